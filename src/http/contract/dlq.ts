/** The endpoints for dead letters in topics. */
import { z } from 'zod'
import { routes } from './route.ts'
import { reason } from './shapes.ts'

const topic = z
  .string()
  .min(1)
  .max(249)
  .regex(/^[A-Za-z0-9._-]+$/, 'give a topic name')
const partition = z.coerce.number().int().min(0)
const offset = z.string().regex(/^\d{1,19}$/, 'give an offset')

const DlqLetter = z.record(z.string(), z.unknown())

export const DLQ_ROUTES = routes({
  listDlq: {
    method: 'get',
    path: '/internal/v1/dlq/{topic}',
    summary: 'Dead letters of a topic with their envelopes (D48).',
    role: 'viewer',
    needs: 'topics',
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
    summary: 'Sends one dead letter back to its topic, for the group that failed on it (D49).',
    role: 'operator',
    needs: 'topics',
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
    summary: 'Replays what is pending in a topic of dead letters (D50).',
    role: 'operator',
    needs: 'topics',
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
    summary: 'Discards one dead letter; it stays in the topic and is no longer listed (D51).',
    role: 'operator',
    needs: 'topics',
    params: z.strictObject({ topic, offset }),
    query: z.strictObject({ partition: partition.optional(), reason: reason.optional() }),
    answer: z.object({ done: z.boolean(), letter: DlqLetter }),
  },
})
