-- Questions of the page, a row for each point of a chart: chart (which of its kind), line (a name in
-- its legend), x and y. :alone is whether the run is the only one; :outcomes have an order.

-- name: requests
-- How many requests a second were due, by operation and what became of them, in steps of :width
-- seconds; of a run alone they stand on each other.
WITH counted AS (
  SELECT operation, floor(due / :width) AS place, count(*) AS n,
    CASE WHEN :alone OR outcome = 'answered' THEN outcome ELSE 'not answered' END AS line
  FROM requests GROUP BY ALL
), lines AS (
  SELECT operation, line, list_position(:outcomes, line) AS rank, sum(n) AS total FROM counted
  GROUP BY operation, line
), places AS (
  SELECT operation, unnest(range(CAST(min(place) AS INT), CAST(max(place) AS INT) + 2)) AS place
  FROM counted GROUP BY operation
), filled AS (
  SELECT operation, line, rank, CAST(total AS BIGINT) AS total, place, coalesce(n, 0) AS n
  FROM lines JOIN places USING (operation) LEFT JOIN counted USING (operation, line, place)
)
SELECT operation AS chart, line, total, place * :width AS x, CASE WHEN :alone
    THEN sum(n) OVER (PARTITION BY operation, place ORDER BY rank) ELSE n END / :width AS y
FROM filled ORDER BY chart, rank NULLS LAST, x

-- name: each
-- Each request, by when it was due and how long after it ended; of many the slowest of a moment.
SELECT operation AS chart, outcome AS line, arg_max(due, {'y': done - due, 'x': -due}) AS x,
  max(done - due) AS y, CAST(sum(count(*)) OVER (PARTITION BY operation, outcome) AS BIGINT) AS total
FROM requests
GROUP BY operation, outcome, floor(due / :width), floor(3 * log10(greatest(done - due, 0.000001)))
ORDER BY chart, list_position(:outcomes, line), x, y

-- name: distribution
-- Response times of each operation by percentile; infinite for who got no answer.
WITH placed AS (
  SELECT operation AS chart, CASE WHEN :alone THEN r.group ELSE '' END AS line,
    floor(40 * ln(least(greatest(response_seconds, 0.000001), 1e9))) AS place, count(*) AS n,
    min(response_seconds) AS least, max(response_seconds) AS y
  FROM measured r GROUP BY ALL
), ranked AS (
  SELECT *, sum(n) OVER (PARTITION BY chart, line ORDER BY place) AS up_to,
    sum(n) OVER (PARTITION BY chart, line) AS total
  FROM placed
)
SELECT chart, line, y, CAST(total AS BIGINT) AS total,
  min(least) OVER (PARTITION BY chart, line) AS least,
  CASE WHEN up_to = total THEN log10(greatest(total, 2)) ELSE -log10(1 - up_to / total) END AS x,
  sum(CASE WHEN isinf(y) THEN n ELSE 0 END) OVER (PARTITION BY chart, line) / total AS never
FROM ranked ORDER BY chart, line, place

-- name: back
-- How many clients of each group were back by when.
WITH told AS (
  SELECT e.group AS line, min(e.seconds) AS x FROM events e WHERE e.what = 'back'
  GROUP BY e.group, e.client
)
SELECT 'back' AS chart, t.line, t.x, row_number() OVER w AS y, count(*) OVER (PARTITION BY t.line)
    AS total, greatest(coalesce(g.clients, 0), total) AS clients,
  coalesce(g.behaviour = 'discover', false) AS discovers
FROM told t LEFT JOIN groups g ON g.group = t.line
WINDOW w AS (PARTITION BY t.line ORDER BY t.x) ORDER BY t.line, t.x

-- name: servers
-- What each server told, by figure; of processor time how many cores it used since the last time.
WITH told AS (
  SELECT figure, process, seconds, sum(value) AS value FROM samples WHERE figure IS NOT NULL
  GROUP BY ALL
), stepped AS (
  SELECT *, lag(value) OVER w AS before, seconds - lag(seconds) OVER w AS passed FROM told
  WINDOW w AS (PARTITION BY figure, process ORDER BY seconds)
)
SELECT figure AS chart, process AS line, seconds AS x,
  CASE WHEN figure <> 'cpu.seconds' THEN value ELSE {rise} / passed END AS y
FROM stepped WHERE figure <> 'cpu.seconds' OR passed > 0 ORDER BY chart, line, x

-- name: over-idle
-- Memory of all servers together, over what they had before.
WITH seen AS (
  SELECT process, floor(seconds * 4) / 4 AS moment, max(value) AS value FROM samples
  WHERE figure = 'resident' GROUP BY process, moment
), idle AS (
  SELECT process, min_by(value, seconds) AS value FROM samples
  WHERE figure = 'resident' GROUP BY process
)
SELECT 'over-idle' AS chart, '' AS line, s.moment AS x, sum(greatest(s.value - i.value, 0)) AS y
FROM seen s JOIN idle i USING (process) GROUP BY s.moment
HAVING count(*) = (SELECT count(*) FROM idle) ORDER BY x

-- name: events
-- Whatever else clients told.
SELECT e.group AS group, e.what, e.text, count(*) AS events, min(e.seconds) AS first_seconds,
  max(e.seconds) AS last_seconds, max(e.value) AS most_seconds
FROM events e WHERE e.what <> 'back' GROUP BY e.group, e.what, e.text
ORDER BY e.group, e.what, e.text LIMIT 100
