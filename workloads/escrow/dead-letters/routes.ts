/** The endpoints of the escrow workers for their dead letters. */
import { z } from 'zod'
import { type Route, route } from '../../../src/http/index.ts'
import { omitUndefined } from '../../../src/job/known-options.ts'
import type { LetterJson } from './letter-json.ts'
import type { TopicDesk } from './topic-desk.ts'

const topic = z
  .string()
  .min(1)
  .max(249)
  .regex(/^[A-Za-z0-9._-]+$/, 'give a topic name')
const partition = z.coerce.number().int().min(0)
const offset = z.string().regex(/^\d{1,19}$/, 'give an offset')

const reason = z.string().trim().min(1).max(500)

const DlqLetter = z.record(z.string(), z.unknown())

export const DLQ_ROUTES = {
  listDlq: {
    method: 'get',
    path: '/internal/v1/dlq/{topic}',
    summary: 'Dead letters of a topic with their envelopes.',
    role: 'viewer',
    params: z.strictObject({ topic }),
    query: z.strictObject({
      state: z.enum(['pending', 'replayed', 'discarded', 'every']).default('pending'),
      limit: z.coerce.number().int().min(1).max(500).default(100),
    }),
    answer: z.object({ letters: z.array(DlqLetter) }),
  },
  replayDlq: {
    method: 'post',
    path: '/internal/v1/dlq/replay',
    summary: 'Sends one dead letter back to its topic, for the group that failed on it.',
    role: 'operator',
    body: z.strictObject({
      topic,
      partition: partition.optional(),
      offset: z.union([offset, z.number().int().min(0)]),
      reason: reason.optional(),
      force: z.boolean().default(false),
      dryRun: z.boolean().default(false),
    }),
    answer: z.object({ done: z.boolean(), letter: DlqLetter }),
  },
  replayAllDlq: {
    method: 'post',
    path: '/internal/v1/dlq/replay-all',
    summary: 'Replays what is pending in a topic of dead letters.',
    role: 'operator',
    query: z.strictObject({
      topic,
      limit: z.coerce.number().int().min(1).max(1_000_000).optional(),
      rate: z.coerce.number().min(0.1).max(100_000).optional(),
      dryRun: z.stringbool().default(false),
      force: z.stringbool().default(false),
      reason: reason.optional(),
    }),
    answer: z.object({ seen: z.number(), replayed: z.number(), refused: z.record(z.string(), z.number()) }),
  },
  discardDlq: {
    method: 'delete',
    path: '/internal/v1/dlq/{topic}/{offset}',
    summary: 'Discards one dead letter, with a reason; it stays in the topic and is no longer listed.',
    role: 'operator',
    params: z.strictObject({ topic, offset }),
    query: z.strictObject({ partition: partition.optional(), reason }),
    answer: z.object({ done: z.boolean(), letter: DlqLetter }),
  },
} as const

/**
 * Routes for `createAdmin`.
 *
 * @example
 * const admin = createAdmin(mill, { topics: dlq.watched(escrowLagLimits), routes: dlqRoutes(dlq) })
 */
export function dlqRoutes(desk: TopicDesk): Readonly<Record<keyof typeof DLQ_ROUTES, Route>> {
  return {
    listDlq: route(DLQ_ROUTES.listDlq, async ({ params, query }, { redact }) => {
      const { letters } = await desk.list({ ...params, ...query })
      return { letters: letters.map((letter) => ({ ...shown(letter, redact), state: letter.state })) }
    }),
    replayDlq: route(DLQ_ROUTES.replayDlq, async ({ body }, { caller, redact }) => {
      const { reason = 'replay', ...input } = omitUndefined(body)
      const { letter } = await desk.replay(input, { who: caller.who, reason })
      return { done: !input.dryRun, letter: shown(letter, redact) }
    }),
    replayAllDlq: route(DLQ_ROUTES.replayAllDlq, async ({ query }, { caller, signal }) => {
      const { reason = 'replay', ...input } = omitUndefined(query)
      const { seen, replayed, refused } = await desk.replayAll(input, { who: caller.who, reason }, { signal })
      return { seen, replayed, refused: Object.fromEntries(Object.entries(refused)) }
    }),
    discardDlq: route(DLQ_ROUTES.discardDlq, async ({ params, query }, { caller, redact }) => {
      const { reason, ...place } = omitUndefined(query)
      const { letter } = await desk.discard({ ...params, ...place }, { who: caller.who, reason })
      return { done: true, letter: shown(letter, redact) }
    }),
  }
}

function shown(letter: LetterJson, redact: (value: unknown) => unknown): Record<string, unknown> {
  return {
    id: letter.id,
    ...{ dlq_topic: letter.topic, dlq_partition: letter.partition, dlq_offset: letter.offset },
    dead_at: letter.deadAt,
    ...withoutSecrets(letter.envelope, redact),
  }
}

/** The original text repeats what was redacted in the parsed value, so it is left out then. */
function withoutSecrets(envelope: LetterJson['envelope'], redact: (value: unknown) => unknown): object {
  const { original_text: text, ...facts } = envelope
  const value = redact(facts.original_value)
  const isWhole = JSON.stringify(value) === JSON.stringify(facts.original_value)
  return { ...facts, original_value: value, ...(isWhole && text !== undefined && { original_text: text }) }
}
