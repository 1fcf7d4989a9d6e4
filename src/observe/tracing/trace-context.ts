import type { SpanContext } from '@opentelemetry/api'
import type { StoredOptions, TraceContext } from '../../job/job.ts'

type Api = typeof import('@opentelemetry/api')

/** Version 00 of W3C Trace Context; what a later version adds behind it may be left unread. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/

/** Null for a span that belongs to no trace: then nobody traces, and there is nothing to carry. */
export function traceContextOf(api: Api, span: SpanContext): TraceContext | null {
  if (!api.isSpanContextValid(span)) return null
  const flags = span.traceFlags.toString(16).padStart(2, '0')
  const traceparent = `00-${span.traceId}-${span.spanId}-${flags}`
  const tracestate = span.traceState?.serialize() ?? ''
  return tracestate === '' ? { traceparent } : { traceparent, tracestate }
}

/** What a job carries may have been written by anybody: null for what is no trace. */
export function spanContextOf(api: Api, options: StoredOptions | null): SpanContext | null {
  const trace: Partial<TraceContext> | null | undefined = options?.trace
  const match = typeof trace?.traceparent === 'string' ? TRACEPARENT.exec(trace.traceparent) : null
  if (match === null) return null
  const [, traceId = '', spanId = '', flags = ''] = match
  const span: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  const state = trace?.tracestate
  return typeof state === 'string' ? { ...span, traceState: api.createTraceState(state) } : span
}
