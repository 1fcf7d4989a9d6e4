/**
 * A rolling upgrade under load: two producers and two workers of one package on a store, the migration by another one,
 * then the processes are replaced one by one while the others go on. Afterwards every acknowledged job is judged.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../conformance/process/child.ts'
import { type Mill, open } from '../../src/index.ts'
import { run } from '../package/build.ts'
import { Member, notesIn } from './fleet.ts'
import { judgeUpgrade, type UpgradeVerdict } from './judge.ts'
import type { InstalledPackage } from './packages.ts'

export interface UpgradeOptions {
  readonly url: string
  readonly from: InstalledPackage
  readonly to: InstalledPackage
  /** How many are acknowledged in all, about. */
  readonly jobs: number
  readonly seed: number
  /** Neither dependencies nor schedules, for packages that had none. */
  readonly plain?: boolean
  /** False for a store without a schema. */
  readonly migrates?: boolean
  /** What else happens to the store once it was migrated and both versions may use it. */
  readonly meanwhile?: () => Promise<void>
}

export interface UpgradeReport extends UpgradeVerdict {
  readonly seconds: number
}

const MEMBERS = ['producer-1', 'worker-1', 'producer-2', 'worker-2'] as const
/** The jobs that are left when nothing more is enqueued. */
const FINISH_MS = 120_000

export async function runUpgrade(options: UpgradeOptions): Promise<UpgradeReport> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-rolling-'))
  const lines = join(folder, 'lines')
  mkdirSync(lines)
  const startedAtMs = performance.now()
  const fleet = new Set<Member>()
  try {
    if (options.migrates !== false) migrateWith(options.from, options.url)
    const faults = await replaceAll(options, lines, fleet)
    const mill = await open(options.url)
    try {
      if (options.plain !== true) await mill.schedules.unschedule('tick')
      await finished(mill)
      for (const member of fleet) faults.push(...(await member.stop()))
      const verdict = await judgeUpgrade(mill, notesIn(lines))
      const violations = [...faults, ...verdict.violations]
      return { ...verdict, violations, seconds: (performance.now() - startedAtMs) / 1_000 }
    } finally {
      await mill.close()
    }
  } finally {
    for (const member of fleet) await member.destroy()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** By the command of the package, as a deployment does it. */
function migrateWith({ command, folder }: InstalledPackage, url: string): void {
  run(process.execPath, [command, 'migrate', '--engine', url], folder)
}

/** Ends with two workers of the new package and no producer. Returns what was wrong. */
async function replaceAll(options: UpgradeOptions, lines: string, fleet: Set<Member>): Promise<string[]> {
  const { url, from, to, jobs, seed, plain = false } = options
  const start = (name: (typeof MEMBERS)[number], by: InstalledPackage): Promise<Member> => {
    const order = { url, folder: lines, name: `${name}-${by.label}`, seed: seed + MEMBERS.indexOf(name), plain }
    const member = new Member(by, name.startsWith('producer') ? 'producer' : 'worker', order)
    fleet.add(member)
    return member.ready()
  }
  const faults: string[] = []
  const leave = async (member: Member): Promise<void> => {
    faults.push(...(await member.stop()))
    fleet.delete(member)
  }
  /** Every process has a share in each step, so that both versions meet in every mixture. */
  const step = async (): Promise<void> => {
    await Promise.all([...fleet].map((member) => member.progressed(Math.ceil(jobs / 14))))
  }
  const members = await Promise.all(MEMBERS.map((name) => start(name, from)))
  await step()
  if (options.migrates !== false) migrateWith(to, url)
  await options.meanwhile?.()
  await step()
  for (const [index, member] of members.entries()) {
    await leave(member)
    await start(MEMBERS[index] ?? MEMBERS[0], to)
    await step()
  }
  for (const member of fleet) if (member.role === 'producer') await leave(member)
  return faults
}

async function finished(mill: Mill): Promise<void> {
  await eventually(
    async () => {
      const counts = Object.values(await mill.counts())
      return counts.every(({ ready, delayed, inProgress }) => ready + delayed + inProgress === 0)
    },
    'the end of all jobs',
    FINISH_MS,
  )
}
