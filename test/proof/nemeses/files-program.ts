/**
 * Another program on the file of a store: `node files-program.ts <file> <ms> <sql>…`. It executes the statements, says
 * `held`, stays so long and ends by itself. Its SQLite is that of Node: an older one may damage the log.
 */
import { DatabaseSync } from 'node:sqlite'

const [file = '', forMs = '0', ...statements] = process.argv.slice(2)
const database = new DatabaseSync(file, { timeout: 10_000 })
for (const sql of statements) database.prepare(sql).all()
process.stdout.write('held\n')
setTimeout(() => database.close(), Number(forMs))
