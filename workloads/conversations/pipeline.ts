/** The pipeline, assembled: its three jobs, and a database with a mill, a model and everything else they need. */
import type { Backoff } from '../../src/job/backoff.ts'
import { defineJob } from '../../src/job/definition.ts'
import { CONVERSATION_JOBS, EXTRACT_LEARNING, SANITIZE_AI_VALIDATION } from './jobs/contract.ts'
import { extractLearning } from './jobs/extract.ts'
import { extractPayload, sanitizePayload } from './jobs/payloads.ts'
import { sanitizeAiValidation } from './jobs/validate.ts'
import type { PipelineParts } from './options.ts'

/** 2 s, 4 s, 8 s … 60 s, each with up to a second more. */
const BACKOFF: Backoff = { kind: 'exponential', base: '1s', max: '60s', firstExponent: 1, jitter: { add: '1s' } }

/** The three jobs of the pipeline: what `mill.work` takes. */
export function conversationJobs(parts: PipelineParts) {
  return [
    defineJob({
      type: SANITIZE_AI_VALIDATION,
      payload: sanitizePayload,
      ...figuresOf(SANITIZE_AI_VALIDATION),
      timeout: '1m',
      run: sanitizeAiValidation(parts),
    }),
    defineJob({
      type: EXTRACT_LEARNING,
      payload: extractPayload,
      ...figuresOf(EXTRACT_LEARNING),
      timeout: '2m',
      run: extractLearning(parts),
    }),
  ] as const
}

function figuresOf(type: keyof typeof CONVERSATION_JOBS) {
  const { priority, attempts } = CONVERSATION_JOBS[type]
  return { priority, attempts, backoff: BACKOFF }
}
