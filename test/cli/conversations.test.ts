import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { toConversationId } from '../../workloads/conversations/hook/input.ts'
import { writeToSpool } from '../../workloads/conversations/hook/spool.ts'
import { openDatabase } from '../../workloads/conversations/store/database.ts'
import { storeBytes } from '../fixtures/store-bytes.ts'
import { ANVIL_CHAIN_ID, anvilMissing, startAnvil } from '../servers/anvil.ts'
import { runCli } from './in-process.ts'
import { jsonLines, MAIN, Running, temporaryFolder } from './run.ts'

const AT = '2026-01-31T09:00:00.000Z'
/** The second is what the hook makes of the session id of an assistant. */
const SESSION = '5f3a0c2e-session'
const [FIRST, SECOND] = ['01K5X000000000000000000001', toConversationId(SESSION)]

/** A file as the pipeline leaves it: one conversation with all that there can be, one that has just begun. */
async function storedIn(folder: string): Promise<string> {
  const file = join(folder, 'c.db')
  const database = openDatabase(file, { nowMs: Date.parse(AT) })
  database.exec(`
INSERT INTO conversations (id, created_at, updated_at) VALUES ('${FIRST}', '${AT}', '${AT}'),
  ('${SECOND}', '${AT}', '2026-01-31T10:00:00.000Z');
INSERT INTO messages (id, conversation_id, role, seq, content, sanitization_version, validated_at, created_at) VALUES
  ('m1', '${FIRST}', 'user', 1, 'mail [EMAIL] about the pool', '1', '${AT}', '${AT}'),
  ('m2', '${SECOND}', 'user', 1, 'hello', '1', NULL, '${AT}');
INSERT INTO sanitization_log VALUES ('s1', '${FIRST}', 'm1', 'email', 'abc', '[EMAIL]', 'rules', 1, '${AT}');
INSERT INTO learnings VALUES
  ('l1', '${FIRST}', 'bug_fix', 'Pool timeouts', 'The pool''s timeout is 30 s; raise it.', 0.9, '["db"]', 'h1', '["m1"]', '${AT}'),
  ('l2', '${FIRST}', 'style', 'Tabs', 'Use two spaces.', 0.8, '[]', 'h2', '["m1"]', '${AT}');
INSERT INTO uploads VALUES ('u1', 'l1', 'bafy1', '0xabc', 'confirmed', '${AT}', '${AT}', '${AT}');`)
  database.close()
  return `sqlite:${file}`
}

describe('millrace conversations', () => {
  it('lists conversations with what has become of them, the latest first', async (t) => {
    const engine = ['--engine', await storedIn(await temporaryFolder(t))]
    const { code, out, err } = await runCli(['conversations', 'list', ...engine])
    assert.deepEqual([code, err], [0, ''])
    const [head = '', ...rows] = out.trimEnd().split('\n')
    assert.match(head, /^ID +UPDATED +MESSAGES +VALIDATED +FINDINGS +LEARNINGS +UPLOADS$/)
    assert.match(rows[0] ?? '', new RegExp(`^${SECOND} .* 1 +0 +0 +0 +0$`))
    assert.match(rows[1] ?? '', new RegExp(`^${FIRST} .* 1 +1 +1 +2 +1$`))
    const json = jsonLines((await runCli(['conversations', 'list', '--limit', '1', '--json', ...engine])).out)
    assert.deepEqual(
      json.map(({ id, messages, validated }) => [id, messages, validated]),
      [[SECOND, 1, 0]],
    )
  })

  it('shows one, and says so when there is none', async (t) => {
    const engine = ['--engine', await storedIn(await temporaryFolder(t))]
    const { code, out } = await runCli(['conversations', 'show', FIRST, ...engine])
    assert.equal(code, 0)
    assert.match(out, /1 {4}user {2}.*mail \[EMAIL\] about the pool/)
    assert.match(out, /1 {4}email {5}rules .*\[EMAIL\]/)
    assert.match(out, /l1 {2}bug_fix {3}0.9 +confirmed +Pool timeouts/)
    const [json] = jsonLines((await runCli(['conversations', 'show', FIRST, '--json', ...engine])).out)
    assert.deepEqual([json?.id, Array.isArray(json?.messages) && json.messages.length], [FIRST, 1])
    const ofSession = await runCli(['conversations', 'show', SESSION, '--json', ...engine])
    assert.equal(jsonLines(ofSession.out)[0]?.id, SECOND)
    const unknown = await runCli(['conversations', 'show', '01K5X000000000000000000009', ...engine])
    assert.equal(unknown.code, 1)
    assert.match(unknown.err, /no conversation has the id .*conversations list \(ERR_RECORD_UNKNOWN\)/)
  })

  // B66
  it('searches learnings by words, whatever stands in them', async (t) => {
    const engine = ['--engine', await storedIn(await temporaryFolder(t))]
    const found = async (...words: readonly string[]): Promise<readonly unknown[]> => {
      const { code, out, err } = await runCli(['conversations', 'learnings', '--json', ...engine, '--', ...words])
      assert.deepEqual([code, err], [0, ''])
      return jsonLines(out).map(({ id }) => id)
    }
    assert.deepEqual(await found('timeout'), ['l1'])
    assert.deepEqual(await found('raise', 'POOL'), ['l1'])
    assert.deepEqual(await found('pool tabs'), [])
    assert.deepEqual(await found('spac*'), ['l2'])
    // No syntax of FTS5 reaches the database.
    for (const hostile of ['"', 'NEAR(', 'title:', 'a OR b', '-pool', "'; DROP TABLE learnings", '^', '*']) {
      assert.ok((await found(hostile)).length < 2, hostile)
    }
    assert.deepEqual((await found()).length, 2)
    const { out } = await runCli(['conversations', 'learnings', 'pool', ...engine])
    assert.match(out, /^ID {2}CATEGORY {2}CONFIDENCE {2}TITLE\nl1 {2}bug_fix {9}0.90 {2}Pool timeouts\n$/)
  })

  it('lists what was published', async (t) => {
    const engine = ['--engine', await storedIn(await temporaryFolder(t))]
    const { out } = await runCli(['conversations', 'uploads', ...engine])
    assert.match(out, /\nl1 {8}confirmed {2}bafy1 {7}0xabc\n$/)
  })

  // B15 B203
  it('forgets a conversation, says what stays published, and leaves a line in the audit', async (t) => {
    const url = await storedIn(await temporaryFolder(t))
    const engine = ['--engine', url]
    const forget = (...args: readonly string[]) => runCli(['conversations', 'forget', FIRST, ...args, ...engine])
    assert.match((await forget('--dry-run')).out, /^Would remove: 1 message, 1 finding, 2 learnings\.\n/)
    const hesitant = await forget()
    assert.deepEqual([hesitant.code, hesitant.out], [2, ''])
    assert.match(hesitant.err, /cannot be undone; add --yes/)
    const { code, out } = await forget('--yes', '--reason', 'they asked')
    assert.equal(code, 0)
    assert.match(out, /^Removed: .*2 learnings/)
    assert.match(out, /cannot be taken back:\n.*\nl1 +confirmed +bafy1 +0xabc\n$/)
    const [entry] = jsonLines((await runCli(['audit', '--json', ...engine])).out)
    assert.deepEqual([entry?.action, entry?.subject, entry?.reason], ['forget', FIRST, 'they asked'])
    assert.deepEqual(jsonLines((await runCli(['conversations', 'learnings', '--json', ...engine])).out), [])
    assert.ok(!readFileSync(url.slice('sqlite:'.length)).includes('about the pool'))
    const json = await runCli(['conversations', 'forget', SESSION, '--yes', '--json', ...engine])
    assert.deepEqual([json.code, jsonLines(json.out)[0]?.messages], [0, 1])
  })

  it('says why the audit has no entry of what was forgotten', async (t) => {
    const url = await storedIn(await temporaryFolder(t))
    await runCli(['migrate', '--engine', url])
    const file = new DatabaseSync(url.slice('sqlite:'.length))
    file.exec(`CREATE TRIGGER full BEFORE INSERT ON job_audit BEGIN SELECT raise(ABORT, 'the audit is full'); END`)
    file.close()
    const { code, err } = await runCli(['conversations', 'forget', FIRST, '--yes', '--engine', url])
    assert.equal(code, 0)
    assert.match(err, /forgotten, but not recorded in the audit: .*the audit is full/)
  })

  it('forgets a conversation of which all that there is waits in the spool', async (t) => {
    const url = await storedIn(await temporaryFolder(t))
    const [file, id] = [url.slice('sqlite:'.length), '01K5X000000000000000000003']
    const message = { id: '01K5X000000000000000000004', conversationId: id, role: 'user', content: 'wait' } as const
    writeToSpool([`${file}.spool`], { ...message, version: '1', findings: [], cut: 0, at: AT })
    const forget = (...args: readonly string[]) => runCli(['conversations', 'forget', id, ...args, '--engine', url])
    assert.match((await forget('--dry-run')).out, /^Would remove: 1 spooled message\.\n/)
    assert.match((await forget('--yes')).out, /^Removed: 1 spooled message\.\n/)
    assert.deepEqual(readdirSync(`${file}.spool`), [])
    const unknown = await runCli(['conversations', 'forget', '01K5X000000000000000000009', '--yes', '--engine', url])
    assert.deepEqual([unknown.code, unknown.out], [1, ''])
  })

  it('says when another process keeps it from erasing, and finishes when it is run again', async (t) => {
    const url = await storedIn(await temporaryFolder(t))
    const file = url.slice('sqlite:'.length)
    const forget = () => runCli(['conversations', 'forget', FIRST, '--yes', '--engine', url])
    const reader = new DatabaseSync(file, { readOnly: true })
    t.after(() => reader.close())
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM messages').get()
    const first = await forget()
    assert.deepEqual([first.code, /^Removed: .*2 learnings/.test(first.out)], [1, true])
    assert.match(first.err, /may still be in it.*run the same command again.*ERR_STORAGE_BUSY/s)
    assert.ok(storeBytes(file).includes('about the pool'))
    reader.exec('COMMIT')
    const second = await forget()
    assert.deepEqual([second.code, second.err], [0, ''])
    assert.match(second.out, /^Removed: nothing was left\.\n/)
    assert.ok(!storeBytes(file).includes('about the pool'))
  })

  it('refuses what it cannot read, and creates nothing', async (t) => {
    const folder = await temporaryFolder(t)
    writeFileSync(join(folder, 'text.db'), 'This is no database. '.repeat(300))
    const wrong: readonly (readonly [args: readonly string[], code: number, says: RegExp])[] = [
      [['list', '--engine', `sqlite:${folder}/none.db`], 1, /no conversations in .*none.db.*ERR_SCHEMA_MISSING/],
      [['list', '--engine', 'redis://127.0.0.1:1'], 2, /kept in SQLite, not in redis.*ERR_OPTION_INVALID/],
      [['list', '--limit', 'few'], 2, /whole number/],
      [['list', '--limit', '0'], 2, /'limit' is 0; give a whole number from 1 to 10000/],
      [['learnings', '--limit', '-1'], 2, /'limit' is -1/],
      [['uploads', '--limit', '10001'], 2, /'limit' is 10001/],
      [['list', '--engine', `sqlite:${folder}/text.db`], 1, /not an SQLite database.*ERR_STORAGE_NOT_A_DATABASE/],
      [['lst'], 2, /Did you mean list/],
      [['show'], 2, /missing required argument 'id'/],
    ]
    for (const [args, code, says] of wrong) {
      const said = await runCli(['conversations', ...args])
      assert.equal(said.code, code, said.err)
      assert.match(said.err, says)
    }
    writeFileSync(join(folder, 'other.db'), '')
    const other = await runCli(['conversations', 'list', '--engine', `sqlite:${folder}/other.db`])
    assert.match(other.err, /ERR_SCHEMA_MISSING/)
  })
})

describe('millrace conversations deploy', () => {
  const missing = { skip: anvilMissing }
  it('deploys the registry with a key that it only knows by reference', missing, async (t) => {
    const anvil = await startAnvil({ args: [] })
    t.after(() => anvil.stop())
    process.env.DEPLOY_KEY = `0x${'7'.repeat(64)}`
    t.after(() => delete process.env.DEPLOY_KEY)
    const { privateKeyToAccount } = await import('viem/accounts')
    const { address: sender } = privateKeyToAccount(`0x${'7'.repeat(64)}`)
    await anvil.call('anvil_setBalance', [sender, '0x56bc75e2d63100000'])
    const args = ['--rpc-url', anvil.url, '--key-ref', 'env:DEPLOY_KEY', '--json']
    const deployed = await runCli(['conversations', 'deploy', ...args, '--chain-id', String(ANVIL_CHAIN_ID)])
    assert.deepEqual([deployed.code, deployed.err], [0, ''])
    const [{ address } = {}] = jsonLines(deployed.out)
    assert.notEqual(await anvil.call('eth_getCode', [address, 'latest']), '0x')
    const elsewhere = await runCli(['conversations', 'deploy', ...args, '--chain-id', '1'])
    assert.equal(elsewhere.code, 1)
    assert.match(elsewhere.err, /the id 31337, not 1/)
    assert.match((await runCli(['conversations', 'deploy'])).err, /required option '--rpc-url <url>' not specified/)
  })
})

describe('millrace hook install', () => {
  it('prints the settings, and writes them only with --write', async (t) => {
    const file = join(await temporaryFolder(t), 'deep', 'settings.json')
    const printed = await runCli(['hook', 'install', '--settings', file])
    assert.equal(printed.code, 0)
    assert.match(printed.out, /UserPromptSubmit[\s\S]*millrace-hook/)
    assert.match(printed.err, /add --write/)
    assert.throws(() => readFileSync(file))
    assert.equal((await runCli(['hook', 'install', '--settings', file, '--write'])).code, 0)
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), JSON.parse(printed.out))
    assert.match((await runCli(['hook', 'install', '--settings', file, '--write'])).out, /has the hook already/)
  })
})

describe('the commands of workloads', () => {
  it('cost the others nothing but the name of an engine, and the list of commands nothing but their descriptions', async () => {
    assert.deepEqual(await loadedBy(['completion', '--help']), [...ALWAYS, ...DESCRIBED])
    assert.deepEqual(await loadedBy(['help', 'stats']), [...ALWAYS, ...DESCRIBED])
    assert.deepEqual(await loadedBy(['stats', '--help']), ALWAYS)
  })
})

const ALWAYS = ['workloads/conversations/store/engine-default.ts']
const DESCRIBED = [
  'workloads/conversations/cli/commands.ts',
  'workloads/memories/cli/commands.ts',
  'workloads/webhooks/cli/commands.ts',
]

async function loadedBy(args: readonly string[]): Promise<readonly string[]> {
  const listening = `import { registerHooks } from 'node:module'
registerHooks({ load: (url, context, next) => { process.stderr.write(url + '\\n'); return next(url, context) } })`
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listening)}` }
  const { code, err } = await new Running(MAIN, args, { env }).ended
  assert.equal(code, 0)
  return err.split('\n').flatMap((url) => /\/(workloads\/.*)$/.exec(url)?.[1] ?? [])
}
