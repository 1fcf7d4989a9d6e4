import { type FigureLimits, figureRules } from '../../src/observe/alerting/figure-rules.ts'
import type { AlertRule } from '../../src/observe/alerting/rule.ts'

/** How long 95 of 100 runs of document B's jobs may take: what each is budgeted for, not one limit for all (X087). */
export const CONVERSATION_LATENCY_MS: Readonly<Record<string, number>> = Object.freeze({
  sanitize_ai_validation: 2_000,
  extract_learning: 5_000,
  mine_upload: 30_000,
})

/**
 * Document B's alert rules with the latencies of its own jobs.
 *
 * @example
 * const alerting = startAlerting(mill, { rules: conversationRules(), sinks: [logSink(log)] })
 */
export function conversationRules(limits: FigureLimits = {}): readonly AlertRule[] {
  return figureRules({ latencyP95MsByType: CONVERSATION_LATENCY_MS, ...limits })
}
