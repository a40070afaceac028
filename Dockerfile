# One image for every process of Floodgate: the command decides which one runs.
#
#   docker build -t floodgate .
#   docker run --rm -p 127.0.0.1:6650:6650 -p 127.0.0.1:8080:8080 floodgate
#
# Python 3.11 is the oldest version that is supported and the one the tests run on.
FROM python:3.11-slim-bookworm AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/floodgate
ENV PATH=/opt/floodgate/bin:$PATH

# What changes rarely comes first. Every file is checked against the hashes in the lock; the lock
# also holds the test tools, so that there is one set of versions to reason about.
COPY requirements.lock requirements-java.lock /src/
RUN python -m pip install --require-hashes -r /src/requirements.lock \
 && python -m pip install --require-hashes -r /src/requirements-java.lock

COPY pyproject.toml README.md LICENSE /src/
COPY limiter /src/limiter
COPY proto /src/proto
COPY client /src/client
COPY server /src/server
COPY broker /src/broker
COPY proxy /src/proxy
COPY loadgen /src/loadgen
RUN python -m pip install --no-deps --no-build-isolation /src

FROM python:3.11-slim-bookworm

ENV PATH=/opt/floodgate/bin:$PATH PYTHONUNBUFFERED=1 HOME=/data
RUN useradd --system --uid 10001 --home-dir /data --create-home --shell /usr/sbin/nologin floodgate
COPY --from=build /opt/floodgate /opt/floodgate
COPY deploy/healthcheck.py /opt/floodgate/healthcheck.py

USER floodgate
WORKDIR /data
VOLUME /data
EXPOSE 6650 8080
# SIGTERM drains; the process answers everything that is in flight before it ends.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s --retries=3 \
  CMD ["python", "/opt/floodgate/healthcheck.py", "http://127.0.0.1:8080/metrics/"]
# Within a container the loopback reaches nobody: what is published decides who comes in.
CMD ["python", "-m", "broker", "--set", "bindAddress=0.0.0.0"]
