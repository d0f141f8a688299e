"""The Django project: settings, URLs, servers' entry points, the Celery application."""
