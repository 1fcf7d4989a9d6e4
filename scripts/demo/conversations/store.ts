/** What the pipeline has stored so far, read from its file as any process may. */
import { DatabaseSync } from 'node:sqlite'

export interface Learnt {
  readonly id: string
  readonly category: string
  readonly title: string
  readonly content: string
  readonly confidence: number
  readonly status: string | null
  readonly ipfs_cid: string | null
  readonly chain_tx_hash: string | null
}

export interface Stored {
  readonly messages: number
  readonly validated: number
  readonly foundByRules: number
  readonly foundByModel: number
  readonly learnt: readonly Learnt[]
  /** Jobs that are not finished. */
  readonly unfinished: number
  readonly dead: number
}

const COUNTS = `SELECT
  (SELECT count(*) FROM messages) AS messages,
  (SELECT count(*) FROM messages WHERE validated_at IS NOT NULL) AS validated,
  (SELECT count(*) FROM sanitization_log WHERE detector = 'rules') AS rules,
  (SELECT count(*) FROM sanitization_log WHERE detector = 'ai') AS ai,
  (SELECT count(*) FROM job_queue WHERE status IN ('queued', 'in_progress', 'failed')) AS unfinished,
  (SELECT count(*) FROM job_queue WHERE status = 'dead_letter') AS dead`

const LEARNT = `SELECT l.id, l.category, l.title, l.content, l.confidence, u.status, u.ipfs_cid, u.chain_tx_hash
FROM learnings l LEFT JOIN uploads u ON u.learning_id = l.id ORDER BY l.id`

const REPLACED = `SELECT category, count(*) AS count FROM sanitization_log
WHERE detector = 'rules' AND rowid > ? GROUP BY category ORDER BY category`

export class StoreReader {
  readonly #database: DatabaseSync
  #seen = 0

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
  }

  read(): Stored {
    const counts = this.#database.prepare(COUNTS).get() ?? {}
    const number = (name: string): number => Number(counts[name])
    const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)
    return {
      messages: number('messages'),
      validated: number('validated'),
      foundByRules: number('rules'),
      foundByModel: number('ai'),
      unfinished: number('unfinished'),
      dead: number('dead'),
      learnt: this.#database
        .prepare(LEARNT)
        .all()
        .map((row) => ({
          id: String(row.id),
          category: String(row.category),
          title: String(row.title),
          content: String(row.content),
          confidence: Number(row.confidence),
          status: text(row.status),
          ipfs_cid: text(row.ipfs_cid),
          chain_tx_hash: text(row.chain_tx_hash),
        })),
    }
  }

  /** What the hook has replaced since the last call, such as `email, phone ×2`. */
  replaced(): string {
    const rows = this.#database.prepare(REPLACED).all(this.#seen)
    this.#seen = Number(
      this.#database.prepare('SELECT coalesce(max(rowid), 0) AS last FROM sanitization_log').get()?.last,
    )
    const parts = rows.map(({ category, count }) => (Number(count) === 1 ? String(category) : `${category} ×${count}`))
    return parts.length === 0 ? 'nothing' : parts.join(', ')
  }

  close(): void {
    this.#database.close()
  }
}
