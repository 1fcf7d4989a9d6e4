export type { SqliteDatabase, SqliteStatement, Synchronous } from './database.ts'
export { SqliteEngine, type SqliteOptions } from './engine.ts'
export { SCHEMA_VERSION } from './migrations.ts'
