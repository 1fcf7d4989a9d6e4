import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { z } from 'zod'
import { openDatabase } from '../../workloads/conversations/store/database.ts'
import { runCli } from './in-process.ts'
import { jsonLines, MAIN, Running, temporaryFolder, until } from './run.ts'

const HOOK = join(import.meta.dirname, '../../workloads/conversations/hook/main.ts')

interface Scene {
  readonly folder: string
  /** Nothing is given but the home folder, as a user starts it. */
  readonly env: Readonly<Record<string, string>>
}

async function scene(t: TestContext): Promise<Scene> {
  const folder = await temporaryFolder(t)
  return { folder, env: { HOME: folder } }
}

function start(t: TestContext, { env }: Scene, ...args: readonly string[]): Running {
  const port = args.includes('--no-http') ? [] : ['--port', '0']
  const running = new Running(MAIN, ['start', '--preset', 'conversations', ...port, '--json', ...args], { env })
  t.after(() => running.child.kill('SIGKILL'))
  return running
}

async function hook({ env }: Scene, content: string): Promise<void> {
  const running = new Running(HOOK, [], { env })
  running.child.stdin?.end(JSON.stringify({ event: 'UserPromptSubmit', conversation_id: 'try', content }))
  assert.equal((await running.ended).code, 0)
}

const Jobs = z.object({ items: z.array(z.object({ type: z.string(), state: z.string() })) })

// B14 B183 B184 B185 B186
test('start --preset conversations works without any option, on the file that the hook writes to', async (t) => {
  const here = await scene(t)
  const running = start(t, here)
  await running.said('To try it')
  await hook(here, 'Ask ann@example.com. Always test the restore of a backup, otherwise it is none.')
  const file = join(here.folder, '.millrace/conversations.db')
  if (process.platform !== 'win32') assert.equal(statSync(file).mode & 0o777, 0o600)
  const engine = ['--engine', `sqlite:${file}`]
  const learnings = async () => jsonLines((await runCli(['conversations', 'learnings', '--json', ...engine])).out)
  await until(async () => (await learnings()).length > 0)
  const [learning] = await learnings()
  assert.match(String(learning?.content), /Always test the restore/)
  // The dashboard beside it shows the jobs; nothing was to be uploaded.
  const url = /"url":"([^"]+)"/.exec(running.output)?.[1]
  const { items: jobs } = Jobs.parse(await (await fetch(`${url}/api/v1/jobs`)).json())
  assert.deepEqual(jobs.map(({ type }) => type).toSorted(), ['extract_learning', 'sanitize_ai_validation'])
  running.child.kill('SIGTERM')
  const { code, out, err } = await running.ended
  assert.deepEqual([code, err], [0, ''])
  const said = jsonLines(out).find(({ msg }) => msg === 'Conversation pipeline')
  assert.deepEqual([said?.model, said?.uploads], ['local', 'off'])
  for (const name of ['', '-wal']) if (existsSync(file + name)) assert.ok(!readFileSync(file + name).includes('ann@'))
})

// B09 B11
test('messages that were spooled while the file was locked are taken in', async (t) => {
  const here = await scene(t)
  await hook(here, 'hello there')
  const database = openDatabase(join(here.folder, '.millrace/conversations.db'), { nowMs: Date.now() })
  database.exec('BEGIN IMMEDIATE')
  await hook(here, 'and again')
  database.exec('ROLLBACK')
  const count = (): number => Number(database.prepare('SELECT count(*) AS count FROM messages').get()?.count)
  t.after(() => database.close())
  assert.equal(count(), 1)
  const running = start(t, here, '--no-http')
  await running.said('Spooled messages taken in')
  assert.equal(count(), 2)
  running.child.kill('SIGINT')
  assert.equal((await running.ended).code, 0)
})

test('what the preset cannot run on or with is refused, and nothing is created', async (t) => {
  const folder = await temporaryFolder(t)
  const refused = async (...args: readonly string[]): Promise<string> => {
    const { code, err } = await runCli(['start', '--preset', 'conversations', '--port', '0', ...args])
    assert.equal(code, 2, err)
    return err
  }
  assert.match(await refused('--engine', 'kafka://127.0.0.1:1'), /kept in SQLite, not in kafka; give --engine sqlite/)
  assert.match(await refused('--engine', 'sqlite::memory:'), /database in memory; give --engine sqlite/)
  const config = join(folder, 'c.json')
  const engine = ['--engine', `sqlite:${folder}/x.db`, '--config', config]
  assert.match(await refused(...engine), /c\.json does not exist/)
  writeFileSync(config, '{ "modle": {} }')
  assert.match(await refused(...engine), /modle/)
  writeFileSync(config, '{ "upload": { "privateKeyRef": "0xsecret" } }')
  const wrong = await refused(...engine)
  assert.match(wrong, /upload\.privateKeyRef: .*env:NAME/)
  assert.doesNotMatch(wrong, /0xsecret/)
  const server = 'http://127.0.0.1:9'
  const where = { ipfsEndpoint: server, rpcUrl: server, chainId: 1, contractAddress: `0x${'5'.repeat(40)}` }
  writeFileSync(config, JSON.stringify({ upload: { ...where, privateKeyRef: 'env:NO_SUCH_KEY' } }))
  assert.match(await refused(...engine), /'upload' cannot be used: the environment has no variable NO_SUCH_KEY/)
  assert.ok(!existsSync(join(folder, 'x.db')))
  assert.match(await refused('--preset', 'conversation'), /did you mean 'conversations'/)
})
