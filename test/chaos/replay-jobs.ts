import { defineJob } from '../../src/index.ts'

/** What the worker is busy with while the desk is at work. */
export const busyJob = defineJob({ type: 'busy' })

/** What died: no worker takes it, so that every replayed one is still there to be counted. */
export const lostJob = defineJob({ type: 'lost', attempts: 1 })
