# One image for every process; the command selects the process.
FROM python:3.11.14-slim-bookworm
RUN apt-get update -q && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* && useradd --create-home penstock && install -d -o penstock /var/penstock
WORKDIR /srv/penstock
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY manage.py LICENSE ./
COPY platform platform
RUN PYTHONPATH=platform python -m localbox.jars /opt/penstock/spark-jars
ENV PENSTOCK_SPARK_JARS=/opt/penstock/spark-jars
COPY penstock_client penstock_client
COPY mgmt mgmt
COPY controlplane controlplane
COPY dataplane dataplane
COPY templates templates
COPY static static
ENV PYTHONPATH=/srv/penstock:/srv/penstock/platform PYTHONUNBUFFERED=1 DJANGO_SETTINGS_MODULE=config.settings
USER penstock
