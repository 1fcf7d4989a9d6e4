/**
 * `npm run start:reaper`: `millrace reap --tables jobs,asr_jobs --every` with the database of DATABASE_URL, for pm2 or
 * systemd. With `--once` it runs once, for cron. All options of `millrace reap` may follow.
 */
import { extensions } from '../bin/extensions.ts'
import { main } from '../src/cli/program.ts'

const { DATABASE_URL, MILLRACE_ENGINE } = process.env
if (MILLRACE_ENGINE === undefined && DATABASE_URL) process.env.MILLRACE_ENGINE = DATABASE_URL

const given = process.argv.slice(2)
const has = (name: string): boolean => given.some((arg) => arg === name || arg.startsWith(`${name}=`))
const args = given.filter((arg) => arg !== '--once')
if (!has('--tables')) args.push('--tables', 'jobs,asr_jobs')
if (!has('--every') && !has('--once')) args.push('--every')

await main(extensions, ['reap', ...args])
