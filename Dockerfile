# Two images of one file: the servers, and the load generator with Spark and Java.
#
#   docker build -t floodgate .                             broker, proxy, floodgate-admin
#   docker build -t floodgate-loadgen --target loadgen .    loadgen, Spark, Java
#   docker run --rm -p 127.0.0.1:6650:6650 -p 127.0.0.1:8080:8080 floodgate
#
# Python 3.11 is the oldest version that is supported and the one the tests run on.

# --- what is installed, by a stage that does not stay --------------------------------------------

FROM python:3.11-slim-bookworm AS packages

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# Without pip: the images install nothing.
RUN python -m venv --without-pip /opt/floodgate && python -m venv --without-pip /opt/build

# What changes rarely comes first. Versions and hashes are those of the lock, without its test tools.
COPY requirements.lock requirements-java.lock pyproject.toml tools/locked_part.py /src/
RUN cd /src \
 && python locked_part.py requirements.lock setuptools > build.lock \
 && python locked_part.py requirements.lock --project pyproject.toml \
    --extra postgresql > servers.lock \
 && python -m pip --python /opt/build/bin/python install --require-hashes -r build.lock \
 && python -m pip --python /opt/floodgate/bin/python install --require-hashes -r servers.lock

COPY README.md LICENSE NOTICE /src/
COPY packaging /src/packaging
COPY limiter /src/limiter
COPY proto /src/proto
COPY client /src/client
COPY server /src/server
COPY broker /src/broker
COPY proxy /src/proxy
COPY loadgen /src/loadgen
COPY deploy/alerts.yml /src/deploy/alerts.yml
RUN cd /src \
 && python -m pip --python /opt/build/bin/python wheel --no-deps --no-build-isolation -w /wheel . \
 && python -m pip --python /opt/floodgate/bin/python install --no-deps /wheel/*.whl

# --- and by another one for the load generator ---------------------------------------------------

FROM packages AS loadgen-packages

RUN cd /src \
 && python locked_part.py requirements.lock --project pyproject.toml \
    --extra postgresql --extra spark > loadgen.lock \
 && python -m pip --python /opt/floodgate/bin/python install --require-hashes \
    -r loadgen.lock -r requirements-java.lock

# --- what both images are ------------------------------------------------------------------------

FROM python:3.11-slim-bookworm AS plain

ENV PATH=/opt/floodgate/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/data
# /data is what a process may write to, beside /tmp: the root file system can be read-only.
RUN useradd --system --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin floodgate \
 && install -d -o floodgate -g floodgate /data /var/lib/floodgate
# A number, so that Kubernetes can see that it is not root.
USER 10001:10001
WORKDIR /data

FROM plain AS loadgen

# Whatever user it runs as: nothing but /tmp is sure to be there for Spark.
ENV HOME=/tmp
COPY --from=loadgen-packages /opt/floodgate /opt/floodgate
CMD ["loadgen", "--help"]

# The last one is what is built when no target is named.
FROM plain AS servers

COPY --from=packages /opt/floodgate /opt/floodgate
COPY deploy/healthcheck.py /opt/floodgate/healthcheck.py
# In the place of Apache Pulsar's image: the same command lines and variables, from the same folder.
USER root
RUN install -d -o floodgate -g floodgate /pulsar /pulsar/data
COPY --chown=floodgate:floodgate deploy/pulsar /pulsar
USER 10001:10001
WORKDIR /pulsar
EXPOSE 6650 8080
# SIGTERM drains; the process answers everything that is in flight before it ends.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s --retries=3 \
  CMD ["python", "/opt/floodgate/healthcheck.py", "http://127.0.0.1:8080/admin/v2/brokers/ready"]
# Within a container the loopback reaches nobody: what is published decides who comes in.
CMD ["floodgate-broker", "--set", "bindAddress=0.0.0.0"]
