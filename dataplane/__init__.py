"""The data plane moves messages. It imports no Django, Celery, Redis or psycopg and is configured by records."""
