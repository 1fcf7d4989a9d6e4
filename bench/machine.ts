import { arch, cpus, loadavg, platform, totalmem } from 'node:os'
import type { MachineFacts } from './result.ts'

export function machineFacts(versions: MachineFacts['versions']): MachineFacts {
  const processors = cpus()
  return {
    cores: processors.length,
    processor: processors[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${platform()} ${arch()}`,
    versions: { node: process.versions.node, ...versions },
    loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  }
}
