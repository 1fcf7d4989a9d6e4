/** The embedding queue for a scrape and for the HTTP API. */
import { z } from 'zod'
import type { Mill } from '../../../src/client/mill.ts'
import { type RouteTable, route } from '../../../src/http/index.ts'
import type { MakeInstrument } from '../../../src/observe/metrics/instrument.ts'
import { figureGauges, type GaugeOf } from '../../figure-gauges.ts'
import { ENTRY_TYPES } from '../entry.ts'
import { type EmbeddingService, queueStats, type ServiceStats } from './queue.ts'

const GAUGES: Readonly<Record<keyof ServiceStats, GaugeOf>> = {
  pending: ['pending', 'pending: versions that wait for a free slot'],
  inFlight: ['in_flight', 'inFlight: versions that are being embedded'],
  dlqSize: ['dlq_size', 'dlqSize: versions that failed for good'],
  uniqueEntries: ['unique_entries', 'uniqueEntries: entries among the pending versions'],
  retrying: ['retrying', 'retrying: versions that failed and wait for their next run'],
}

/** Gauges `embedding_queue_pending` and so on. */
export const queueInstrument: MakeInstrument = figureGauges('embedding_queue', GAUGES, ({ engine }) =>
  queueStats(engine),
)

const entryType = z.enum(ENTRY_TYPES)
const name = z.string().min(1)

/** `enqueue` and `getQueueStats` of the queue, and a search, over HTTP. */
export function queueRoutes(service: EmbeddingService, mill: Mill): RouteTable {
  return {
    enqueueEmbedding: route(
      {
        method: 'post',
        path: '/api/v1/embeddings',
        summary: 'Queues a version of an entry and returns at once. Only the newest version is embedded.',
        role: 'operator',
        body: z.strictObject({
          entryType,
          entryId: name,
          versionId: name,
          content: z.string(),
          seq: z.int().positive().exactOptional(),
        }),
        answer: z.object({ id: z.string(), status: z.string(), seq: z.number() }),
        status: 202,
      },
      ({ body }) => service.enqueue(mill, body),
    ),
    embeddingQueueStats: route(
      {
        method: 'get',
        path: '/api/v1/embeddings/stats',
        summary: 'The figures of the embedding queue.',
        role: 'viewer',
        answer: z.object({
          pending: z.number(),
          inFlight: z.number(),
          dlqSize: z.number(),
          uniqueEntries: z.number(),
          retrying: z.number(),
        }),
      },
      () => queueStats(mill.engine),
    ),
    searchEmbeddings: route(
      {
        method: 'get',
        path: '/api/v1/embeddings/search',
        summary: 'The entries whose text is nearest to this one.',
        role: 'viewer',
        query: z.strictObject({
          text: z.string().min(1),
          entryType: entryType.optional(),
          limit: z.coerce.number().int().min(1).max(100).default(10),
        }),
        answer: z.object({
          found: z.array(z.object({ entry: z.string(), versionId: z.string().nullable(), score: z.number() })),
        }),
      },
      async ({ query: { text, ...options } }) => ({ found: await service.search(text, options) }),
    ),
  }
}
