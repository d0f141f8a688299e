"""The data plane: moves messages. Imports no Django, Celery, Redis or psycopg; configuration reaches it as records."""
