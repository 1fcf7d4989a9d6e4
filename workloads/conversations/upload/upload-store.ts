import type { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { newJobId } from '../../../src/job/job.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { fromIso, toIso } from '../../../src/time/iso.ts'
import { inTransaction } from '../store/database.ts'

export type UploadStatus = 'ipfs_uploaded' | 'tx_submitted' | 'confirmed'

const uploadRow = z.object({
  ipfs_cid: z.string().nullable(),
  chain_tx_hash: z.string().nullable(),
  status: z.enum(['ipfs_uploaded', 'tx_submitted', 'confirmed']),
})
export type UploadRow = z.infer<typeof uploadRow>

const transactionRow = z.object({
  tx_hash: z.string(),
  learning_id: z.string(),
  genesis_hash: z.string(),
  sender: z.string(),
  nonce: z.int(),
  raw: z.templateLiteral(['0x', z.string()]),
  created_at: z.string().transform(fromIso),
})
/** A signed transaction. `created_at` is in milliseconds. */
export type StoredTransaction = z.infer<typeof transactionRow>
export type NewTransaction = Omit<StoredTransaction, 'created_at'>

/** Which chain and contract the rows are about. */
export interface StoreScope {
  readonly chainId: number
  readonly contractAddress: string
}

/**
 * A status is never replaced by an earlier one, and nothing about a confirmed upload changes: a worker that comes late may
 * still write what it knew.
 */
const UPSERT = `
INSERT INTO uploads (id, learning_id, ipfs_cid, chain_tx_hash, status, uploaded_at, created_at, updated_at)
VALUES (:id, :learning, :cid, :hash, :status, :now, :now, :now)
ON CONFLICT (learning_id) DO UPDATE SET
  ipfs_cid = excluded.ipfs_cid,
  chain_tx_hash = coalesce(excluded.chain_tx_hash, uploads.chain_tx_hash),
  status = excluded.status,
  uploaded_at = CASE WHEN excluded.status = 'ipfs_uploaded' THEN excluded.uploaded_at ELSE uploads.uploaded_at END,
  updated_at = excluded.updated_at
WHERE uploads.status = 'ipfs_uploaded' OR (uploads.status = 'tx_submitted' AND excluded.status <> 'ipfs_uploaded')`

const START = `INSERT INTO upload_starts (learning_id, ipfs_cid, created_at) VALUES (:learning, :cid, :now)
ON CONFLICT (learning_id) DO UPDATE SET ipfs_cid = excluded.ipfs_cid`

const TRANSACTION_COLUMNS = 'tx_hash, learning_id, genesis_hash, sender, nonce, raw, created_at'
const OF_LEARNING = `SELECT ${TRANSACTION_COLUMNS} FROM upload_transactions
WHERE learning_id = ? AND chain_id = ? AND lower(contract_address) = lower(?) ORDER BY created_at, rowid`
const AT_NONCE = `SELECT ${TRANSACTION_COLUMNS} FROM upload_transactions
WHERE chain_id = ? AND sender = ? AND nonce = ? ORDER BY created_at DESC, rowid DESC LIMIT 1`
const HIGHEST_NONCE = `SELECT max(nonce) AS nonce FROM upload_transactions WHERE chain_id = ? AND sender = ?`
const OTHER_GENESIS = `SELECT genesis_hash FROM upload_transactions WHERE chain_id = ? AND genesis_hash <> ? LIMIT 1`
const INSERT = `INSERT INTO upload_transactions
(tx_hash, learning_id, chain_id, genesis_hash, contract_address, sender, nonce, raw, created_at)
VALUES (:hash, :learning, :chain, :genesis, :contract, :sender, :nonce, :raw, :now)`

/** The rows of `uploads`, `upload_starts` and `upload_transactions`. */
export class UploadStore {
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #scope: StoreScope

  constructor(database: DatabaseSync, clock: Clock, scope: StoreScope) {
    this.#database = database
    this.#clock = clock
    this.#scope = scope
  }

  upload(learningId: string): UploadRow | null {
    const row = this.#database.prepare(`SELECT * FROM uploads WHERE learning_id = ?`).get(learningId)
    return row === undefined ? null : uploadRow.parse(row)
  }

  /** Notes, before anything is sent, that the learning may be on IPFS from now on. */
  start(learningId: string, cid: string): void {
    this.#database.prepare(START).run({ learning: learningId, cid, now: toIso(this.#clock.nowMs()) })
  }

  /** Does nothing when the row has a later status already. */
  record(
    learningId: string,
    to: { readonly status: UploadStatus; readonly cid: string; readonly txHash?: string },
  ): void {
    const nowMs = this.#clock.nowMs()
    this.#database.prepare(UPSERT).run({
      id: newJobId(nowMs),
      learning: learningId,
      cid: to.cid,
      hash: to.txHash ?? null,
      status: to.status,
      now: toIso(nowMs),
    })
  }

  /** Everything that was signed for a learning, oldest first. */
  transactionsOf(learningId: string): readonly StoredTransaction[] {
    const rows = this.#database.prepare(OF_LEARNING).all(learningId, this.#scope.chainId, this.#scope.contractAddress)
    return rows.map((row) => transactionRow.parse(row))
  }

  /** The newest transaction that was signed with this nonce, for any learning. */
  transactionAt(sender: string, nonce: number): StoredTransaction | null {
    const row = this.#database.prepare(AT_NONCE).get(this.#scope.chainId, sender, nonce)
    return row === undefined ? null : transactionRow.parse(row)
  }

  /** The first nonce above all that were given out here. */
  nextNonce(sender: string): number {
    const highest = this.#database.prepare(HIGHEST_NONCE).get(this.#scope.chainId, sender)?.nonce
    return typeof highest === 'number' ? highest + 1 : 0
  }

  /** Whether transactions were stored for a chain with this id that began with another block. */
  knowsOtherGenesis(genesis: string): boolean {
    return this.#database.prepare(OTHER_GENESIS).get(this.#scope.chainId, genesis) !== undefined
  }

  /**
   * Stores a signed transaction, before it is sent. False, and nothing is stored, when another worker was faster: it has
   * signed for this learning since `seen` rows were read, or has given out the nonce. `check` may throw: signing takes time,
   * and the learning may have been forgotten meanwhile.
   */
  insert(
    transaction: NewTransaction,
    { seen, nonceIsNew, check }: { readonly seen: number; readonly nonceIsNew: boolean; check?(): void },
  ): boolean {
    return inTransaction(this.#database, () => {
      check?.()
      if (this.transactionsOf(transaction.learning_id).length !== seen) return false
      if (nonceIsNew && this.nextNonce(transaction.sender) > transaction.nonce) return false
      this.#database.prepare(INSERT).run({
        hash: transaction.tx_hash,
        learning: transaction.learning_id,
        chain: this.#scope.chainId,
        genesis: transaction.genesis_hash,
        contract: this.#scope.contractAddress,
        sender: transaction.sender,
        nonce: transaction.nonce,
        raw: transaction.raw,
        now: toIso(this.#clock.nowMs()),
      })
      return true
    })
  }
}
