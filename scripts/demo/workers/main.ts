/**
 * Webhooks, embeddings and memories in one process on one SQLite file, `npm run demo:workers`. It ends with 0 only if
 * everything that it prints was found to be true.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { StopRequest } from '../../../src/cli/stop-signals.ts'
import { createAdmin } from '../../../src/http/index.ts'
import { type Mill, openDesk } from '../../../src/index.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { EmbeddingBatchWorker, hashEmbedder, openVectorStore } from '../../../workloads/embeddings/index.ts'
import { openMemories } from '../../../workloads/memories/index.ts'
import { openWebhooks } from '../../../workloads/webhooks/index.ts'
import { runDemonstration } from '../demonstration.ts'
import { check, heading, step, table, terminal } from '../progress.ts'
import { embedTexts, searchTexts } from './embeddings.ts'
import { consolidateMemories } from './memories.ts'
import { startReceiver } from './receiver.ts'
import { sendWebhooks } from './webhooks.ts'

async function demonstrate(stop: StopRequest, keep: boolean): Promise<boolean> {
  await using ends = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-demo-'))
  ends.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  const engine = `sqlite:${path.join(folder, 'workers.db')}`
  const receiver = await startReceiver()
  ends.defer(() => receiver.close())
  step('receiver', `at ${receiver.origin}: it verifies signatures, one of its ten paths is slow and one is missing`)

  const embedder = hashEmbedder()
  const vectors = await openVectorStore(engine)
  ends.defer(() => vectors.close())
  const memories = await openMemories({ engine, vectors, embedder })
  ends.defer(() => memories.close())
  const { mill } = memories
  const webhooks = await openWebhooks({ engine, mill, allow: [receiver.origin] })
  ends.defer(() => webhooks.close())
  const embedding = new EmbeddingBatchWorker(embedder, vectors)
  const jobs = [...webhooks.jobs, embedding.definition, ...memories.jobs]
  const dashboard = await serve(mill, jobs, ends)
  // A stop ends the running jobs first: they use everything above.
  const worker = await mill.work(jobs)
  ends.defer(() => worker.stop())
  step('worker', `${jobs.length} types on one SQLite file; the dashboard is at ${dashboard}`)

  const { signal } = stop
  const startedMs = systemClock.monotonicMs()
  const sent = await sendWebhooks({ webhooks, receiver, desk: openDesk(mill), signal })
  const embedded = await embedTexts({ mill, job: embedding.definition, vectors, signal })
  const searched = await searchTexts({ vectors, embedder, signal })
  const merged = await consolidateMemories({ memories, signal })
  if (signal.aborted) return false

  heading('In numbers')
  const figures = [...sent.figures, ...embedded.figures, ...searched.figures, ...merged.figures]
  table(['WHAT', 'FIGURE'], figures)
  step('done', `in ${((systemClock.monotonicMs() - startedMs) / 1_000).toFixed(1)} s`)
  heading('Is it true?')
  const checks = [...sent.checks, ...embedded.checks, ...searched.checks, ...merged.checks]
  const isTrue = checks.map(([holds, text]) => check(holds, text)).every(Boolean)
  if (keep) await stay(stop, dashboard, engine)
  return isTrue
}

async function serve(mill: Mill, jobs: Parameters<Mill['work']>[0], ends: AsyncDisposableStack): Promise<string> {
  const admin = createAdmin(mill, { jobs })
  ends.defer(() => admin.close())
  return (await admin.listen({ port: 0 })).url
}

async function stay(stop: StopRequest, dashboard: string, engine: string): Promise<void> {
  heading('It stays until Ctrl-C')
  terminal.print(`dashboard  ${dashboard}`)
  terminal.print(`commands   npm run -s millrace -- webhooks deliveries --engine ${engine}`)
  await stop.unlessStopped(new Promise(() => {}))
}

await runDemonstration('demo:workers', 'the dashboard and the database', demonstrate)
