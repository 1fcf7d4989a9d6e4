import { DEAD_LETTER_ROUTES } from './dead-letters.ts'
import { DLQ_ROUTES } from './dlq.ts'
import { JOB_ROUTES } from './jobs.ts'
import { OPERATING_ROUTES } from './operating.ts'

export const ROUTES = { ...OPERATING_ROUTES, ...JOB_ROUTES, ...DEAD_LETTER_ROUTES, ...DLQ_ROUTES } as const

export type Routes = typeof ROUTES
export type RouteId = keyof Routes
