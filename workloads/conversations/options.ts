import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../src/time/clock.ts'
import type { Duration } from '../../src/time/duration.ts'
import type { Model } from './models/model.ts'
import type { Sanitize } from './sanitize/rule.ts'

/** Where learnings are published. Without it nothing is uploaded: publishing cannot be taken back. */
export interface UploadSettings {
  /** The RPC of Kubo, such as http://127.0.0.1:5001. */
  readonly ipfsEndpoint: string
  readonly rpcUrl: string
  /** Refused when the node answers another one. */
  readonly chainId: number
  readonly contractAddress: string
  /** `env:NAME` or `file:PATH` of a v3 keystore. */
  readonly privateKeyRef: string
  /** Blocks on top of the transaction's own before it counts as confirmed; default: 2. */
  readonly confirmations?: number
  /** How long a job that waits for the chain is given back; default: 4s. */
  readonly poll?: Duration
  /** A transaction that is not mined after this is sent again with higher fees; default: 3m. */
  readonly bumpAfter?: Duration
}

export interface ExtractSettings {
  /** Default: 0.7. */
  readonly minConfidence?: number
  /** Default: every category. */
  readonly categories?: readonly string[]
}

/** What the three handlers share. */
export interface PipelineParts {
  /** A connection of the pipeline's own. Transactions on it must not await. */
  readonly database: DatabaseSync
  /** The local secret of `original_snippet_hash`. */
  readonly secret: Uint8Array
  readonly clock: Clock
  readonly sanitize: Sanitize
  readonly model: Model
  /** Reaches only the endpoints of the model, IPFS and the chain. */
  readonly fetch: typeof fetch
  readonly extract: Required<ExtractSettings>
  readonly upload: UploadSettings | null
}
