import { NOW } from './statements.ts'

export const NOTIFY = (): string => `SELECT pg_notify($2, $3) WHERE ${NOW} IS NOT NULL`
