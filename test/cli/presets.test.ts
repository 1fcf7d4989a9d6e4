import assert from 'node:assert/strict'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { defineJob, open } from 'millrace'
import { extensions } from '../../bin/extensions.ts'
import type { OpenPreset, PresetOptions } from '../../src/cli/extensions.ts'
import { run } from '../../src/cli/program.ts'
import { runCli } from './in-process.ts'
import { temporaryFolder, until } from './run.ts'

interface Started {
  readonly ended: Promise<number>
  /** Everything it has printed and logged. */
  readonly said: () => string
  /** What its preset was opened with. */
  readonly given: () => PresetOptions
}

/** Runs `start --preset tried` in this process; SIGTERM is emitted, not sent, so that only this process hears it. */
function startTried(
  t: TestContext,
  args: readonly string[],
  engineDefault: string,
  opened: (given: PresetOptions) => OpenPreset,
): Started {
  const out = new PassThrough()
  let said = ''
  out.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  let given: PresetOptions | null = null
  const preset = {
    takes: ['config'] as const,
    open: async (options: PresetOptions) => {
      given = options
      return opened(options)
    },
  }
  const terminal = {
    out,
    columns: null,
    print: (line: string) => void out.write(`${line}\n`),
    complain: (line: string) => void out.write(`${line}\n`),
    paint: (_style: unknown, text: string) => text,
    flush: async () => {},
    outliveReader: () => {},
    lostReader: false,
  }
  const ended = run(['start', '--preset', 'tried', '--port', '0', ...args], terminal, {
    ...extensions,
    presets: { tried: { summary: 'to be tried', engineDefault, load: async () => ({ preset }) } },
  })
  t.after(stop)
  return { ended, said: () => said, given: () => given ?? assert.fail('it was not opened') }
}

function stop(): void {
  process.emit('SIGTERM', 'SIGTERM')
}

async function engineIn(t: TestContext): Promise<string> {
  return `sqlite:${join(await temporaryFolder(t), 'tried.db')}`
}

test('a preset has its own engine, configuration, jobs, duties and alert rules, and is closed last', async (t) => {
  const engine = await engineIn(t)
  const did: string[] = []
  const greet = defineJob({ type: 'greet', run: () => void did.push('ran') })
  let passes = 0
  const started = startTried(t, ['--config', 'c.json'], engine, (given) => ({
    workers: [{ engine: given.engine, jobs: [greet], options: { poll: '50ms', drain: '1s' } }],
    alertRules: [
      {
        name: 'Tried',
        severity: 'warning',
        evaluate: () => [{ labels: {}, value: 1, threshold: 0, text: 'it was tried' }],
      },
    ],
    duties: [
      {
        name: 'sweep',
        every: '5ms',
        run: async () => {
          passes += 1
          if (passes === 1) throw new Error('the broom is broken')
        },
      },
    ],
    examples: [['millrace jobs', 'the jobs']],
    close: async () => void did.push('closed'),
  }))
  await until(() => started.said().includes('To try it'))
  assert.equal(started.given().engine, engine)
  assert.equal(started.given().config, 'c.json')
  const mill = await open(engine)
  await mill.enqueue(greet, null)
  await until(() => did.includes('ran'))
  // A duty that fails is tried again.
  await until(() => passes > 3)
  assert.match(started.said(), /the broom is broken.*A duty failed; it is tried again/)
  await mill.close()
  stop()
  assert.equal(await started.ended, 0)
  assert.deepEqual(did, ['ran', 'closed'])
})

test('what a preset opened is closed when the start fails', async (t) => {
  const engine = await engineIn(t)
  let closed = 0
  const { ended, said } = startTried(t, [], engine, () => ({
    workers: [{ engine: 'nonsense:', jobs: [] }],
    examples: [],
    close: async () => {
      closed += 1
    },
  }))
  assert.equal(await ended, 2)
  assert.match(said(), /names no engine/)
  assert.equal(closed, 1)
})

test('an engine that is named wins over the one of the preset', async (t) => {
  const [engine, other] = [await engineIn(t), await engineIn(t)]
  const refuse = (): never => {
    throw new Error('seen enough')
  }
  const started = startTried(t, ['--engine', other], engine, refuse)
  assert.equal(await started.ended, 1)
  assert.equal(started.given().engine, other)
})

test('a preset that does not exist, and options that do not go with one', async () => {
  const refused = async (...args: readonly string[]): Promise<string> => {
    const { code, err } = await runCli(['start', ...args])
    assert.equal(code, 2, err)
    return err
  }
  assert.match(await refused('--preset', 'escro'), /no preset 'escro'; did you mean 'escrow'\?/)
  assert.match(
    await refused('--preset', 'toString'),
    /no preset 'toString'; there are 'conversations', 'embeddings', 'escrow', 'framework', and 'webhooks'/,
  )
  assert.match(await refused('--preset', 'escrow', '--config', 'x', '--engine', 'kafka://a'), /does not take --config/)
  assert.match(await refused('--config', 'x'), /add --preset/)
  assert.match(
    await refused('--preset', 'embeddings', '--engine', 'kafka://a'),
    /needs latest keys.*give --engine sqlite/,
  )
  assert.match(
    await refused('jobs.ts', '--preset', 'webhooks'),
    /'webhooks' brings its own jobs; leave out the modules/,
  )
})

test('presets are listed with what they run and where, by help, without a name, and with a wrong one', async () => {
  const { out } = await runCli(['start', '--help'])
  assert.match(out, /--preset \[name\][^<]*choices:\s+"conversations", "embeddings", "escrow"/)
  const lines = Object.entries(extensions.presets).map(([name, { summary, engineDefault }]) =>
    engineDefault === null
      ? `- ${name}: ${summary}; needs --engine\n`
      : `- ${name}: ${summary}; engine by default: ${engineDefault}\n`,
  )
  assert.ok(out.includes(`Presets:\n${lines.join('')}`), out)
  const alone = await runCli(['start', '--preset'])
  assert.equal(alone.code, 2)
  assert.ok(alone.err.startsWith(`${lines.join('')}error: --preset needs a name; there are 'conversations'`), alone.err)
  const wrong = await runCli(['start', '--preset', 'framwork'])
  assert.ok(wrong.err.startsWith(`${lines.join('')}error: there is no preset 'framwork'; did you mean 'framework'?`))
  // A program reads one object.
  const { err } = await runCli(['start', '--preset', '--json'])
  assert.equal(JSON.parse(err).error.code, 'ERR_OPTION_INVALID')
})

test('every preset that the command lists can be loaded', async () => {
  for (const [name, { load }] of Object.entries(extensions.presets)) {
    assert.equal(typeof (await load()).preset.open, 'function', name)
  }
})
