import { LANES, lease, locked, places, probe } from './claim.ts'
import { CLAIMABLE, DUE, jobColumns, NOW } from './fragments.ts'
import type { Names } from './names.ts'

/**
 * Every type and each priority that it has jobs of: most types have one or two, and most of the time none. It does not know
 * a cursor, so where there is one, all priorities are tried.
 */
function usedPlaces(jobs: string): string {
  const next = (lane: string, last: string): string => `SELECT priority FROM ${jobs}
      WHERE type = ${lane}.type AND priority > ${last} AND ${CLAIMABLE} ORDER BY priority LIMIT 1`
  return `RECURSIVE places AS (
  SELECT lane.type, lane.bound, lane.lease_ms, lane.since, found.priority
  FROM ${LANES} CROSS JOIN LATERAL (${next('lane', '0')}) AS found
  UNION ALL SELECT last.type, last.bound, last.lease_ms, last.since, found.priority
  FROM places AS last CROSS JOIN LATERAL (${next('last', 'last.priority')}) AS found)`
}

/** A subquery, so that the planner does not prefer a new plan for each number. */
const MAX = '(SELECT $7::int)'

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
 * jobs before it: `marks` are the last of a few jobs from each place, and the bar is the first mark with enough jobs before
 * it. Only jobs before the bar are compared. Each place has a job to give, so no more than $7 of them matter.
 */
const claimMany = (jobs: string, somePlaces: string): string => `
WITH ${somePlaces},
heads AS MATERIALIZED (
  SELECT *, row_number() OVER (ORDER BY priority, head_due, head_arrival) AS nth FROM (
    SELECT place.*, head.due AS head_due, head.arrival AS head_arrival,
      row_number() OVER (PARTITION BY place.type ORDER BY place.priority) AS type_nth
    FROM places AS place CROSS JOIN LATERAL (
      ${probe(jobs, 'place', `${DUE} AS due, arrival`, '1')}) AS head) AS place
  WHERE type_nth <= bound ORDER BY priority, head_due, head_arrival LIMIT ${MAX}),
marks AS MATERIALIZED (
  SELECT depth.nth, head.type, head.bound, head.priority, mark.jobs, mark.due, mark.arrival
  FROM ${DEPTHS} JOIN heads AS head ON head.nth <= depth.places CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, (array_agg(due))[count(*)] AS due, (array_agg(arrival))[count(*)] AS arrival FROM (
      ${probe(jobs, 'head', `${DUE} AS due, arrival`, 'least(depth.jobs, head.bound)')}) AS few) AS mark),
counted AS (
  SELECT *, least(bound, sum(jobs) OVER same) - least(bound, sum(jobs) OVER same - jobs) AS more FROM marks
  WHERE arrival IS NOT NULL
  WINDOW same AS (PARTITION BY nth, type ORDER BY priority, due, arrival ROWS UNBOUNDED PRECEDING)),
bar AS MATERIALIZED (
  SELECT priority, due, arrival FROM (
    SELECT *, sum(more) OVER (PARTITION BY nth ORDER BY priority, due, arrival ROWS UNBOUNDED PRECEDING) AS before
    FROM counted) AS mark
  WHERE before >= $7 ORDER BY priority, due, arrival LIMIT 1),
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
    WHERE place_nth <= bound ORDER BY priority, due, arrival LIMIT ${MAX}) AS chosen
  GROUP BY type, priority, since, lease_ms),
${locked(jobs)}
${lease(jobs, jobColumns('job'))}`

/** From the beginning. */
export const CLAIM_MANY = ({ jobs }: Names): string => claimMany(jobs, usedPlaces(jobs))

/** From the cursors on. */
export const CLAIM_MANY_ON = ({ jobs }: Names): string => claimMany(jobs, places(LANES))
