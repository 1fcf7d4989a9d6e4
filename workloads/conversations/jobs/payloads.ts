import { z } from 'zod'
import { ULID_PATTERN } from './contract.ts'

const conversationId = z.string().regex(ULID_PATTERN, 'is not a ULID')

/** `env:NAME` or `file:PATH`. A key that somebody pasted there is no reference: the reference is stored and shown. */
export const KEY_REFERENCE = /^(?:env:|file:)(?!(?:0x)?[0-9a-fA-F]{64}$)\S+$/

export const sanitizePayload = z.strictObject({
  conversation_id: conversationId,
  /** The messages that caused the job. It validates every message of the conversation that is not validated yet. */
  message_ids: z.array(z.string()),
  sanitization_version: z.string(),
})

export const extractPayload = z.strictObject({
  conversation_id: conversationId,
  min_confidence: z.number().min(0).max(1),
  /** Empty: every category. */
  categories: z.array(z.string()),
})

export const uploadPayload = z.strictObject({
  learning_id: z.string().regex(ULID_PATTERN, 'is not a ULID'),
  ipfs_endpoint: z.url(),
  chain_config: z.strictObject({
    rpc_url: z.url(),
    contract_address: z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'is not an address'),
    private_key_ref: z.string().regex(KEY_REFERENCE, 'is not a reference; give env:NAME or file:PATH'),
  }),
})

export type SanitizePayload = z.infer<typeof sanitizePayload>
export type ExtractPayload = z.infer<typeof extractPayload>
export type UploadPayload = z.infer<typeof uploadPayload>
