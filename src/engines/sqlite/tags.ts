/** The tags of jobs as rows of their own, so that only tagged jobs pay for their index. */
import type { NewJob } from '../../job/job.ts'
import { isRecord, parseOrText } from '../../job/stored-json.ts'
import { tagsOf } from '../../job/tags.ts'
import type { Connection } from './database.ts'

/** Another program may write anything into the column, and a bad text must not make its statement fail. */
export const ORGANISATION = `CASE WHEN json_valid(tenant) THEN tenant ->> '$.orgId' END`

/** What searches need beside the indexes that were there. Jobs without a tag, a tenant or a key are in none of these. */
export const SEARCHING = `
CREATE TABLE IF NOT EXISTS job_tags (
  tag TEXT NOT NULL,
  job_id TEXT NOT NULL,
  PRIMARY KEY (tag, job_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idx_job_tags_job ON job_tags(job_id);
INSERT OR IGNORE INTO job_tags (tag, job_id)
SELECT tags.value, job_queue.id FROM job_queue, json_each(CASE WHEN json_valid(options) THEN options ELSE '{}' END, '$.tags') AS tags
WHERE options LIKE '%"tags"%' AND tags.type = 'text';
CREATE INDEX IF NOT EXISTS idx_job_queue_tenant ON job_queue(${ORGANISATION}) WHERE tenant IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_job_queue_released ON job_queue(released_key) WHERE released_key IS NOT NULL;
`

export const ADD_TAG = `INSERT OR IGNORE INTO job_tags (tag, job_id) VALUES (:tag, :id)`

export const FORGET_TAGS = `DELETE FROM job_tags WHERE job_id IN (SELECT value FROM json_each(:ids))`

/** In the transaction that stores the job. */
export function addTags(connection: Connection, { id, options }: Pick<NewJob, 'id' | 'options'>): void {
  for (const tag of tagsOf(options)) connection.prepare(ADD_TAG).run({ tag, id })
}

/** In the transaction that removes the jobs. */
export function forgetTags(
  connection: Connection,
  jobs: readonly { readonly id: string; readonly options: string | null }[],
): void {
  const tagged = jobs.filter(({ options }) => {
    const stored = options === null ? null : parseOrText(options)
    return isRecord(stored) && tagsOf(stored).length > 0
  })
  if (tagged.length > 0) connection.prepare(FORGET_TAGS).run({ ids: JSON.stringify(tagged.map(({ id }) => id)) })
}
