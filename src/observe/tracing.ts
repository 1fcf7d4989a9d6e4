import type { Span, SpanAttributes, SpanContext } from '@opentelemetry/api'
import { EngineError } from '../errors.ts'
import type { MillEvents } from '../events.ts'
import { errorText, redact, toErrorRecord } from '../job/error-record.ts'
import type { NewJob, StoredOptions, TraceContext, TracedStart, Tracer, Tracing } from '../job/job.ts'
import type { ObservedMill } from './observed-mill.ts'

type Api = typeof import('@opentelemetry/api')

/**
 * Traces a mill with OpenTelemetry: one span per enqueue call, and one per attempt in the same trace, across processes. The
 * spans go to the program's own exporter. They have ids, names and errors, never payloads. Needs `@opentelemetry/api`.
 * Returns the detacher, which ends open spans.
 *
 * @example
 * const detach = await attachTracing(mill)
 */
export async function attachTracing(mill: ObservedMill<'name'> & { readonly tracing: Tracing }): Promise<() => void> {
  const api = await import('@opentelemetry/api').catch((error: unknown) => {
    throw new EngineError('ERR_MODULE_MISSING', 'To trace: npm install @opentelemetry/api', { cause: error })
  })
  const spans = new JobSpans(api, mill.engine.name)
  mill.tracing.tracer = spans
  const detach = mill.events.attach({
    'job.settled': (event) => spans.settled(event),
    'lease.lost': (event) => spans.lost(event),
    'worker.stopped': ({ worker }) => spans.stopped(worker),
  })
  return () => {
    if (mill.tracing.tracer === spans) mill.tracing.tracer = null
    detach()
    spans.close()
  }
}

class JobSpans implements Tracer {
  readonly #api: Api
  readonly #engine: string
  /** By worker, then by attempt: the span of an abandoned job ends with its worker. */
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
    // A span that happens to be active in the claim loop is not this job's parent.
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

  /** The engine has accepted the outcome, and its error is already redacted. */
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

/** Version 00 of W3C Trace Context. Later versions may append fields. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/

/** Null for a span without a trace: the program does not trace. */
function traceContextOf(api: Api, span: SpanContext): TraceContext | null {
  if (!api.isSpanContextValid(span)) return null
  const flags = span.traceFlags.toString(16).padStart(2, '0')
  const traceparent = `00-${span.traceId}-${span.spanId}-${flags}`
  const tracestate = span.traceState?.serialize() ?? ''
  return tracestate === '' ? { traceparent } : { traceparent, tracestate }
}

/** Null for anything that is not a trace context: any program may have written it. */
function spanContextOf(api: Api, options: StoredOptions | null): SpanContext | null {
  const trace: Partial<TraceContext> | null | undefined = options?.trace
  const match = typeof trace?.traceparent === 'string' ? TRACEPARENT.exec(trace.traceparent) : null
  if (match === null) return null
  const [, traceId = '', spanId = '', flags = ''] = match
  const span: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  const state = trace?.tracestate
  return typeof state === 'string' ? { ...span, traceState: api.createTraceState(state) } : span
}
