/**
 * The rolling upgrade with more jobs, other engines and any earlier package:
 * `npm run upgrade -- --jobs 20000 --from <commit> --engine kafka --seed 1`. `--plain`: without schedules and
 * dependencies, which the first packages did not have.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { installCommit, installPresent, previousCommit } from './packages.ts'
import { ENGINES, upgradeOn } from './places.ts'
import { runUpgrade } from './rolling.ts'

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '20000' },
    from: { type: 'string', default: previousCommit() ?? 'HEAD' },
    engine: { type: 'string', default: ENGINES.join(',') },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    plain: { type: 'boolean', default: false },
  },
})
const folder = mkdtempSync(join(tmpdir(), 'millrace-packages-'))
try {
  const [old, present] = [join(folder, 'old'), join(folder, 'present')]
  for (const project of [old, present]) mkdirSync(project)
  const from = installCommit(values.from, old)
  if (from === null) throw new Error(`--from ${values.from}: git knows no such commit`)
  const to = installPresent(present)
  for (const engine of values.engine.split(',')) {
    console.log(`${engine} from ${from.label}, seed ${values.seed}`)
    const choice = { jobs: Number(values.jobs), seed: Number(values.seed), plain: values.plain }
    const { violations, ...figures } = await upgradeOn(engine, (place) => runUpgrade({ ...choice, ...place, from, to }))
    console.log(figures, violations.length === 0 ? 'nothing lost, nothing doubled' : violations.slice(0, 20))
    if (violations.length > 0) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
