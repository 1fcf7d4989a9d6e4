import type { Span, SpanAttributes } from '@opentelemetry/api'
import { EngineError } from '../../errors.ts'
import type { Events, MillEvents } from '../../events.ts'
import { redact, toErrorRecord } from '../../job/error-record.ts'
import type { NewJob, TracedStart, Tracer, Tracing } from '../../job/job.ts'
import { errorText } from '../error-text.ts'
import { spanContextOf, traceContextOf } from './trace-context.ts'

type Api = typeof import('@opentelemetry/api')

/** A mill, or whatever has its events and a place for a tracer. */
export interface Traced {
  readonly events: Events
  readonly engine: { readonly name: string }
  readonly tracing: Tracing
}

/**
 * Traces a mill with OpenTelemetry: a span for each call that enqueues and one for each start of a job, in the trace of
 * whoever enqueued it, in whichever process. The spans go where the program's own go. They have ids, names and errors,
 * never payloads. Needs `@opentelemetry/api`; returns the detacher, which ends the spans that are open.
 *
 * @example
 * const detach = await attachTracing(mill)
 */
export async function attachTracing(mill: Traced): Promise<() => void> {
  const api = await import('@opentelemetry/api').catch((error: unknown) => {
    throw new EngineError('ERR_MODULE_MISSING', 'To trace: npm install @opentelemetry/api', { cause: error })
  })
  const spans = new JobSpans(api, mill.engine.name)
  mill.tracing.tracer = spans
  const { events } = mill
  const detachers = [
    events.on('job.settled', (event) => spans.settled(event)),
    events.on('lease.lost', (event) => spans.lost(event)),
    events.on('worker.stopped', ({ worker }) => spans.stopped(worker)),
  ]
  return () => {
    if (mill.tracing.tracer === spans) mill.tracing.tracer = null
    for (const detach of detachers) detach()
    spans.close()
  }
}

class JobSpans implements Tracer {
  readonly #api: Api
  readonly #engine: string
  /** By worker, then by start: what is given up while the store is away ends with its worker at the latest. */
  readonly #running = new Map<string, Map<string, Span>>()

  constructor(api: Api, engine: string) {
    this.#api = api
    this.#engine = engine
  }

  async enqueue<T>(jobs: readonly NewJob[], store: (jobs: readonly NewJob[]) => Promise<T>): Promise<T> {
    const { SpanKind, context, trace } = this.#api
    const types = [...new Set(jobs.map(({ type }) => type))]
    const [only] = jobs
    const span = this.#start(`enqueue ${types.length === 1 ? types[0] : 'flow'}`, SpanKind.PRODUCER, {
      'messaging.operation.name': 'enqueue',
      'messaging.operation.type': 'send',
      ...(types.length === 1 && { 'messaging.destination.name': types[0] }),
      ...(jobs.length === 1 && only !== undefined
        ? { 'messaging.message.id': only.id, 'messaging.message.body.size': Buffer.byteLength(only.payload) }
        : { 'messaging.batch.message_count': jobs.length }),
    })
    const carried = traceContextOf(this.#api, span.spanContext())
    const traced =
      carried === null ? jobs : jobs.map((job) => ({ ...job, options: { ...job.options, trace: carried } }))
    try {
      return await context.with(trace.setSpan(context.active(), span), () => store(traced))
    } catch (error) {
      this.#fail(span, { name: toErrorRecord(error).name, message: errorText(error) })
      throw error
    } finally {
      span.end()
    }
  }

  run(start: TracedStart, run: () => void): void {
    const { ROOT_CONTEXT, SpanKind, context, trace } = this.#api
    const { job, attempt, worker } = start
    const from = spanContextOf(this.#api, job.options)
    // Nothing that happens to be active where jobs are claimed has to do with this one.
    const parent = from === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, from)
    const attributes = {
      'messaging.operation.name': 'run',
      'messaging.operation.type': 'process',
      'messaging.destination.name': job.type,
      'messaging.message.id': job.id,
      'millrace.attempt': attempt,
      'millrace.attempts': job.attempts,
      'millrace.worker': worker,
    }
    const span = this.#start(`run ${job.type}`, SpanKind.CONSUMER, attributes, parent)
    const spans = this.#running.get(worker) ?? new Map<string, Span>()
    this.#running.set(worker, spans.set(keyOf(start), span))
    context.with(trace.setSpan(parent, span), run)
  }

  /** The outcome as the engine has accepted it: its error is redacted already. */
  settled(event: MillEvents['job.settled']): void {
    const { outcome } = event
    const span = this.#take(event)
    if (span === null) return
    span.setAttribute('millrace.outcome', outcome.kind)
    if (outcome.kind === 'retry' || outcome.kind === 'dead') this.#fail(span, outcome.error)
    span.end()
  }

  lost(event: MillEvents['lease.lost']): void {
    const span = this.#take(event)
    if (span === null) return
    span.setAttribute('millrace.outcome', 'lost')
    this.#fail(span, { name: 'LeaseLostError', message: `the lease was lost: ${event.reason}` })
    span.end()
  }

  stopped(worker: string): void {
    for (const span of this.#running.get(worker)?.values() ?? []) span.end()
    this.#running.delete(worker)
  }

  close(): void {
    for (const worker of [...this.#running.keys()]) this.stopped(worker)
  }

  #start(name: string, kind: number, attributes: SpanAttributes, parent = this.#api.context.active()): Span {
    const own = { 'messaging.system': 'millrace', 'millrace.engine': this.#engine }
    return this.#api.trace
      .getTracer('millrace')
      .startSpan(name, { kind, attributes: { ...own, ...attributes } }, parent)
  }

  #take(event: Pick<MillEvents['lease.lost'], 'job' | 'attempt' | 'worker'>): Span | null {
    const spans = this.#running.get(event.worker)
    const key = keyOf(event)
    const span = spans?.get(key) ?? null
    spans?.delete(key)
    return span
  }

  #fail(span: Span, error: { readonly name: string; readonly message: string; readonly stack?: string | null }): void {
    const message = redact(error.message)
    span.recordException({ name: error.name, message, ...(typeof error.stack === 'string' && { stack: error.stack }) })
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message })
  }
}

function keyOf({ job, attempt }: { readonly job: { readonly id: string }; readonly attempt: number }): string {
  return `${job.id}\n${attempt}`
}
