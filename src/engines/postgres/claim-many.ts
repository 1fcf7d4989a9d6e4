import { LANES, lease, locked, places, probe } from './claim.ts'
import { DUE, jobColumns, NOW } from './fragments.ts'
import type { Names } from './names.ts'

/**
 * How deep to read before the jobs are compared: all places a little, a few deeper, the first one whole. Jobs of many types
 * that came in turns lie in all places; those of one type that came together lie in the first.
 */
const DEPTHS = `(VALUES (1, (SELECT count(*) FROM heads), 2 * $7::int / greatest(1, (SELECT count(*) FROM heads)) + 1),
    (2, 8::bigint, $7::int / 4 + 1), (3, 1::bigint, $7::bigint)) AS depth (nth, places, jobs)`

/** Row comparison alone would not end the scan of the index. */
const UNTIL_BAR = `least(${NOW}, place.last_due) AND (${DUE}, arrival) <= (place.last_due, place.last_arrival)`

/**
 * Claims the most urgent due jobs of several types, at most $7, and of each type at most its bound. To read as many jobs of
 * each type as are wanted of all would cost each type its share of every claim. So first comes a bar that surely has enough
 * jobs before it: `marks` are the last of a few jobs from each place, and the bar is the latest mark of a depth whose jobs
 * are enough. Only jobs before the bar are compared.
 */
export const CLAIM_MANY = ({ jobs }: Names): string => `
WITH ${places(LANES)},
heads AS MATERIALIZED (
  SELECT place.*, head.due AS head_due, row_number() OVER (ORDER BY place.priority, head.due, head.arrival) AS nth
  FROM places AS place CROSS JOIN LATERAL (
      ${probe(jobs, 'place', `${DUE} AS due, arrival`, '1')}) AS head),
marks AS MATERIALIZED (
  SELECT depth.nth, head.type, head.bound, head.priority, mark.jobs, mark.due, mark.arrival
  FROM ${DEPTHS} JOIN heads AS head ON head.nth <= depth.places CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, (array_agg(due))[count(*)] AS due, (array_agg(arrival))[count(*)] AS arrival FROM (
      ${probe(jobs, 'head', `${DUE} AS due, arrival`, 'least(depth.jobs, head.bound)')}) AS few) AS mark),
deep AS (
  SELECT nth FROM (SELECT nth, least(max(bound), sum(jobs)) AS jobs FROM marks GROUP BY nth, type) AS each
  GROUP BY nth HAVING sum(jobs) >= $7),
bar AS MATERIALIZED (
  SELECT priority, due, arrival FROM (
    SELECT DISTINCT ON (nth) priority, due, arrival FROM marks WHERE nth IN (SELECT nth FROM deep)
    ORDER BY nth, priority DESC, due DESC, arrival DESC NULLS FIRST) AS latest
  WHERE arrival IS NOT NULL ORDER BY priority, due, arrival LIMIT 1),
wanted AS (
  SELECT type, priority, since, lease_ms, count(*) AS jobs FROM (
    SELECT * FROM (
      SELECT place.*, found.due, found.arrival,
        row_number() OVER (PARTITION BY place.type ORDER BY place.priority, found.due, found.arrival) AS place_nth
      FROM (
        SELECT head.*, CASE WHEN head.priority = bar.priority THEN bar.due ELSE 'infinity' END AS last_due,
          CASE WHEN head.priority = bar.priority THEN bar.arrival ELSE 0 END AS last_arrival
        FROM heads AS head LEFT JOIN bar ON true
        WHERE bar.priority IS NULL OR head.priority < bar.priority
          OR head.priority = bar.priority AND head.head_due <= bar.due) AS place
      CROSS JOIN LATERAL (
      ${probe(jobs, 'place', `${DUE} AS due, arrival`, 'place.bound', UNTIL_BAR)}) AS found) AS candidate
    WHERE place_nth <= bound ORDER BY priority, due, arrival LIMIT $7) AS chosen
  GROUP BY type, priority, since, lease_ms),
${locked(jobs)}
${lease(jobs, jobColumns('job'))}`
