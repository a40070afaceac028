-- Questions to one run, for DuckDB and for Spark SQL alike; each gives equal rows in both.
--
-- Tables: requests, events, samples, as tasks wrote them; groups, a row for each group of the
-- document; measured, the requests that were due while figures are taken. :name is a parameter.
-- A word in braces is another of these questions, or is put in: split has a part for each name
-- by-...; the tests' list of questions has each of them as it is run.
--
-- Percentiles are nearest rank, exact, and infinite for who got no answer. They are found in two
-- steps, so that memory does not grow with the rows: in which of some thousand buckets each lies,
-- then which of the values in that bucket it is.

-- name: split
-- Counts by outcome and percentiles of the requests of each {part}.
WITH asked AS (
  SELECT {part} AS part, {seconds} AS seconds, outcome, bytes,
    CAST(floor(64 * ln(least(greatest({seconds}, 0.000001), 1000000))) AS BIGINT) AS bucket
  FROM {rows} r WHERE {where}
), coarse AS (
  SELECT part, bucket, count(*) AS n, max(seconds) AS longest, sum(bytes) AS bytes,
    count_if(outcome = 'answered') AS answered, count_if(outcome = 'refused') AS refused,
    count_if(outcome = 'wrong') AS wrong, count_if(outcome = 'timeout') AS timeout,
    count_if(outcome = 'disconnected') AS disconnected,
    count_if(outcome = 'unreachable') AS unreachable
  FROM asked GROUP BY part, bucket
), ranked AS (
  SELECT part, bucket, n, sum(n) OVER (PARTITION BY part ORDER BY bucket) AS up_to,
    sum(n) OVER (PARTITION BY part) AS total
  FROM coarse
), wanted AS (
  SELECT r.part, r.bucket, q.share, r.total, r.up_to - r.n AS below
  FROM ranked r CROSS JOIN (VALUES {shares}) AS q(share)
  WHERE r.up_to * 1000000 >= r.total * q.share AND (r.up_to - r.n) * 1000000 < r.total * q.share
), again AS (
  SELECT {part} AS part, {seconds} AS seconds,
    CAST(floor(64 * ln(least(greatest({seconds}, 0.000001), 1000000))) AS BIGINT) AS bucket
  FROM {rows} r WHERE {where}
), counted AS (
  SELECT a.part, a.bucket, a.seconds, count(*) AS n
  FROM again a JOIN (SELECT DISTINCT part, bucket FROM wanted) w
    ON a.part = w.part AND a.bucket = w.bucket
  GROUP BY a.part, a.bucket, a.seconds
), near AS (
  SELECT part, bucket, seconds, sum(n) OVER (PARTITION BY part, bucket ORDER BY seconds) AS up_to
  FROM counted
), found AS (
  SELECT w.part, w.share, min(n.seconds) AS seconds
  FROM wanted w JOIN near n ON w.part = n.part AND w.bucket = n.bucket
  WHERE (w.below + n.up_to) * 1000000 >= w.total * w.share
  GROUP BY w.part, w.share
), percentiles AS (
  SELECT part, {percentiles} FROM found GROUP BY part
), counts AS (
  SELECT part, CAST(sum(n) AS BIGINT) AS requests, CAST(sum(answered) AS BIGINT) AS answered,
    CAST(sum(refused) AS BIGINT) AS refused, CAST(sum(wrong) AS BIGINT) AS wrong,
    CAST(sum(timeout) AS BIGINT) AS timeout, CAST(sum(disconnected) AS BIGINT) AS disconnected,
    CAST(sum(unreachable) AS BIGINT) AS unreachable, CAST(sum(bytes) AS BIGINT) AS bytes,
    max(longest) AS max
  FROM coarse GROUP BY part
)
SELECT c.part, c.requests, c.answered, c.refused, c.wrong, c.timeout, c.disconnected,
  c.unreachable, c.bytes, {columns}, c.max
FROM counts c JOIN percentiles p ON c.part = p.part ORDER BY c.part

-- name: tails
-- The slowest of those answered.
SELECT r.task, r.client, r.group AS group, r.family, r.operation, r.namespace, r.item, r.due,
  r.sent, r.first_byte, r.done, r.response_seconds, r.service_seconds, r.bytes
FROM measured r WHERE r.outcome = 'answered'
ORDER BY r.response_seconds DESC, r.due, r.client, r.item LIMIT :most

-- name: reasons
-- Why requests were refused or lost, those of most requests first.
SELECT outcome, reason, count(*) AS requests, min(due) AS first_due, max(due) AS last_due
FROM measured WHERE outcome <> 'answered'
GROUP BY outcome, reason ORDER BY requests DESC, outcome, reason LIMIT :most

-- name: answers
-- What listings were like: names and bytes, the least and the most.
SELECT r.group AS group, r.namespace, count(*) AS answers, min(r.topics) AS least_topics,
  max(r.topics) AS most_topics, min(r.bytes) AS least_bytes, max(r.bytes) AS most_bytes
FROM measured r WHERE r.outcome = 'answered' AND r.topics IS NOT NULL
GROUP BY r.group, r.namespace ORDER BY r.group, r.namespace

-- name: clients
-- A row for each client: how long after its start it was back, infinite for who never was; and of its
-- lists and watches how many were refused, lost or wrong. Those that found no server in a run that
-- takes servers away, those that the end of the run cut of who was back, and watches of patterns that
-- the server does not take, for which clients poll, are not counted.
WITH known AS (
  SELECT r.client, r.group AS group, r.family, r.namespace,
    count_if(r.operation = 'list') AS listings FROM requests r
  GROUP BY r.client, r.group, r.family, r.namespace
  UNION ALL
  SELECT DISTINCT e.client, e.group AS group, e.family, e.namespace, 0 AS listings FROM events e
  WHERE e.client >= 0
), happened AS (
  SELECT client, min(CASE WHEN what = 'back' THEN value END) AS back_seconds,
    count_if(what = 'connection-lost') AS lost
  FROM events GROUP BY client
), counted AS (
  SELECT m.client, count(*) AS asked, count_if(m.outcome <> 'answered') AS refused,
    count_if(m.outcome <> 'answered' AND m.reason = {ended}) AS cut
  FROM measured m WHERE m.operation IN ('list', 'watch') AND NOT (
    (SELECT count(*) FROM events WHERE what = 'shock') > 0
    AND (m.outcome IN ('disconnected', 'unreachable')
      OR coalesce(m.reason, '') LIKE 'ServiceNotReady%'))
    AND NOT (m.operation = 'watch' AND coalesce(m.reason, '') LIKE 'NotAllowedError%')
  GROUP BY m.client
)
SELECT k.client, min(k.group) AS group, min(k.family) AS family, min(k.namespace) AS namespace,
  coalesce(min(h.back_seconds), CAST('Infinity' AS DOUBLE)) AS back_seconds,
  CAST(sum(k.listings) AS BIGINT) AS listings, coalesce(max(h.lost), 0) AS reconnects,
  coalesce(max(c.asked - CASE WHEN h.back_seconds IS NULL THEN 0 ELSE c.cut END), 0) AS asked,
  coalesce(max(c.refused - CASE WHEN h.back_seconds IS NULL THEN 0 ELSE c.cut END), 0) AS refused
FROM known k LEFT JOIN happened h ON k.client = h.client LEFT JOIN counted c ON k.client = c.client
GROUP BY k.client ORDER BY k.client

-- name: back
-- How many clients of each group were back, after how long, and how many of their lists and watches
-- were refused, lost or wrong, as each client's.
WITH placed AS (
  SELECT c.group AS group, c.family, c.back_seconds, c.asked, c.refused,
    row_number() OVER (PARTITION BY c.group, c.family ORDER BY c.back_seconds) AS place,
    count(*) OVER (PARTITION BY c.group, c.family) AS total
  FROM ({clients}) c
)
SELECT p.group AS group, p.family, count(*) AS clients,
  count_if(p.back_seconds < CAST('Infinity' AS DOUBLE)) AS back,
  avg(CASE WHEN p.back_seconds < CAST('Infinity' AS DOUBLE) THEN 1E0 ELSE 0E0 END) AS rate,
  min(CASE WHEN p.place * 100 >= p.total * 50 THEN p.back_seconds END) AS p50,
  min(CASE WHEN p.place * 100 >= p.total * 90 THEN p.back_seconds END) AS p90,
  min(CASE WHEN p.place * 100 >= p.total * 99 THEN p.back_seconds END) AS p99,
  min(CASE WHEN p.place * 1000 >= p.total * 999 THEN p.back_seconds END) AS p999,
  max(p.back_seconds) AS max, CAST(sum(p.asked) AS BIGINT) AS asked,
  CAST(sum(p.refused) AS BIGINT) AS refused
FROM placed p GROUP BY p.group, p.family ORDER BY p.group, p.family

-- name: agreement
-- Right answers to one question that list different names, though nobody changed the namespace.
WITH answers AS (
  SELECT r.namespace, r.group AS group, r.item, r.topics_hash, min(r.topics) AS topics,
    min(r.task) AS task, count(*) AS n
  FROM requests r
  WHERE r.operation = 'list' AND r.outcome = 'answered' AND r.topics IS NOT NULL
    AND r.namespace NOT IN (
      SELECT namespace FROM requests WHERE operation IN ('create', 'delete', 'producer'))
  GROUP BY r.namespace, r.group, r.item, r.topics_hash
)
SELECT a.namespace, a.group AS group, a.item, count(*) AS kinds,
  CAST(sum(a.n) - max(a.n) AS BIGINT) AS answers, min(a.topics) AS least_topics,
  max(a.topics) AS most_topics, min(a.task) AS first_task, max(a.task) AS last_task
FROM answers a GROUP BY a.namespace, a.group, a.item HAVING count(*) > 1
ORDER BY a.namespace, a.group, a.item

-- name: lost
-- Published messages that a subscription did not get though a consumer that reads stood there,
-- and stayed, for :patience seconds and more behind the answer.
WITH topics AS (
  SELECT DISTINCT l.client, g.behaviour, l.item AS topic
  FROM requests l JOIN groups g ON l.group = g.group
  WHERE l.operation = 'lookup' AND g.behaviour IN ('publish', 'consume')
), stands AS (
  SELECT t.topic, g.subscription, s.client, s.done AS since,
    coalesce(min(e.seconds), CAST('Infinity' AS DOUBLE)) AS until
  FROM requests s JOIN groups g ON s.group = g.group JOIN topics t ON s.client = t.client
    LEFT JOIN events e
      ON e.client = s.client AND e.what = 'connection-lost' AND e.seconds >= s.done
  WHERE s.operation = 'subscribe' AND s.outcome = 'answered' AND g.behaviour = 'consume' AND g.reads
  GROUP BY t.topic, g.subscription, s.client, s.done
), expected AS (
  SELECT DISTINCT p.group AS group, w.subscription, p.client, p.item, p.sent
  FROM requests p JOIN topics t ON p.client = t.client JOIN stands w ON w.topic = t.topic
  WHERE p.operation = 'publish' AND p.outcome = 'answered' AND t.behaviour = 'publish'
    AND w.since <= p.sent AND w.until > p.done + :patience
    AND p.done < (SELECT max(done) FROM requests) - :patience
), delivered AS (
  SELECT DISTINCT g.subscription, d.item FROM requests d JOIN groups g ON d.group = g.group
  WHERE d.operation = 'deliver'
)
SELECT x.group AS group, x.subscription, count(*) AS lost, min(x.sent) AS first_sent,
  max(x.sent) AS last_sent
FROM expected x LEFT JOIN delivered d
  ON d.subscription = x.subscription AND d.item = concat(x.client, ' ', x.item)
WHERE d.item IS NULL GROUP BY x.group, x.subscription ORDER BY x.group, x.subscription

-- name: doubled
-- Messages that a subscription got more than once though none of its consumers was lost.
WITH got AS (
  SELECT g.subscription, d.item, count(*) AS n
  FROM requests d JOIN groups g ON d.group = g.group
  WHERE d.operation = 'deliver' AND d.outcome = 'answered'
    AND g.subscription NOT IN (
      SELECT h.subscription FROM events e JOIN groups h ON e.group = h.group
      WHERE e.what = 'connection-lost' AND h.subscription IS NOT NULL)
  GROUP BY g.subscription, g.publishers, d.item
)
SELECT subscription, count(*) AS messages, CAST(sum(n - 1) AS BIGINT) AS doubled
FROM got WHERE n > 1 GROUP BY subscription ORDER BY subscription

-- name: untold
-- Creations and deletions that a client which watched the whole namespace was not told of,
-- though it stayed for :patience seconds and more.
WITH watching AS (
  SELECT w.client, w.group AS group, w.namespace, w.done AS since,
    coalesce(min(e.seconds), CAST('Infinity' AS DOUBLE)) AS until
  FROM requests w JOIN groups g ON w.group = g.group
    LEFT JOIN events e
      ON e.client = w.client AND e.what = 'connection-lost' AND e.seconds >= w.done
  WHERE w.operation = 'watch' AND w.outcome = 'answered' AND g.behaviour = 'watch'
    AND g.pattern IS NULL AND g.reads
  GROUP BY w.client, w.group, w.namespace, w.done
), changes AS (
  SELECT namespace, concat(CASE WHEN operation = 'create' THEN '+' ELSE '-' END, item) AS item,
    sent, done
  FROM requests WHERE operation IN ('create', 'delete') AND outcome = 'answered'
), told AS (
  SELECT DISTINCT client, item FROM requests WHERE operation = 'update'
)
SELECT w.group AS group, w.namespace, count(*) AS untold, count(DISTINCT w.client) AS clients,
  min(c.done) AS first_done
FROM watching w JOIN changes c ON w.namespace = c.namespace
  LEFT JOIN told t ON t.client = w.client AND t.item = c.item
WHERE w.since <= c.sent AND w.until > c.done + :patience
  AND c.done < (SELECT max(done) FROM requests) - :patience AND t.item IS NULL
GROUP BY w.group, w.namespace ORDER BY w.group, w.namespace

-- name: servers
-- Each figure of each server: the first, the last, the most, and how much a counter rose, which
-- began again from 0 where it fell by 1 % or more (less is noise); the most is its own mark, which
-- no sample misses, if it has one.
WITH marks AS (
  SELECT process, max(value) AS high, CASE WHEN figure IN ('heap.high', 'direct.high')
      THEN replace(figure, '.high', '.used') ELSE replace(figure, '.high', '') END AS figure
  FROM samples WHERE figure LIKE '%.high' GROUP BY process, samples.figure
), stepped AS (
  SELECT process, coalesce(figure, metric) AS figure, seconds, value,
    lag(value) OVER (PARTITION BY process, coalesce(figure, metric) ORDER BY seconds) AS before
  FROM samples
)
SELECT s.process, s.figure, min_by(value, seconds) AS first, max_by(value, seconds) AS last,
  greatest(max(value), coalesce(max(high), max(value))) AS max,
  sum({rise}) AS rise, max(seconds) AS last_seconds
FROM stepped s LEFT JOIN marks m ON m.process = s.process AND m.figure = s.figure
GROUP BY s.process, s.figure ORDER BY s.process, s.figure

-- name: again
-- How long after each shock every client had an answer again; infinite if not all had. Without a
-- shock it is after the start; where :at is not 0, after that.
WITH shocks AS (
  SELECT seconds, text AS shock FROM events WHERE client = -1 AND what = 'shock' AND :at = 0
), moments AS (
  SELECT seconds, shock FROM shocks
  UNION ALL SELECT :at AS seconds, '' AS shock WHERE (SELECT count(*) FROM shocks) = 0
), answers AS (
  SELECT m.seconds, m.shock, r.client, min(CASE WHEN outcome = 'answered' THEN done END) AS answered
  FROM moments m LEFT JOIN requests r ON r.done > m.seconds GROUP BY m.seconds, m.shock, r.client
)
SELECT seconds, shock, max(CASE WHEN client IS NOT NULL
    THEN coalesce(answered - seconds, CAST('Infinity' AS DOUBLE)) END) AS again_seconds,
  count(client) AS clients
FROM answers GROUP BY seconds, shock ORDER BY seconds, shock
