export type { PgClient, PgPool } from './driver.ts'
export { PostgresEngine } from './engine.ts'
export { SCHEMA_VERSION } from './migrations.ts'
export type { PostgresOptions } from './options.ts'
