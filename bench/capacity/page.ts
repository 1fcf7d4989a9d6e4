/** The measured tables of docs/capacity.md, between two comments. */
import { readFileSync, writeFileSync } from 'node:fs'
import { median } from '../statistics.ts'
import type { Measured } from './measure.ts'
import { type EngineCost, type EngineName, medianCosts } from './model.ts'

const PAGE = new URL('../../docs/capacity.md', import.meta.url)
const TITLES: Readonly<Record<EngineName, string>> = {
  sqlite: 'SQLite',
  postgres: 'Postgres',
  redis: 'Redis',
  kafka: 'Kafka',
}

const us = (value: number): string => (value === 0 ? '–' : `${Math.round(value)} µs`)
const count = (value: number): string => Number(value.toPrecision(2)).toLocaleString('en')

/** The median, and the lowest and highest of the runs. */
function rate(cost: EngineCost, runs: readonly Measured[], value: (one: EngineCost) => number): string {
  const all = runs.flatMap(({ costs }) => costs.filter(({ engine }) => engine === cost.engine).map(value))
  return `${count(value(cost))}/s (${count(Math.min(...all))}–${count(Math.max(...all))})`
}

function costRow(cost: EngineCost, runs: readonly Measured[]): string {
  const { engine, enqueueUs, runUs, serverUs, bytesPerJob } = cost
  const perCore = serverUs === 0 ? '–' : `${count(1e6 / serverUs)}/s`
  const drained = [
    rate(cost, runs, (one) => one.drainedPerSecond),
    rate(cost, runs, (one) => one.drainedByFourPerSecond),
  ].join(' | ')
  const bytes = bytesPerJob === null ? 'the topic' : `${count(bytesPerJob)} bytes`
  return `| ${TITLES[engine]} | ${us(enqueueUs)} | ${us(runUs)} | ${us(serverUs)} | ${perCore} | ${drained} | ${bytes} |`
}

export function tables(runs: readonly Measured[]): string {
  const [last] = runs.slice(-1)
  if (last === undefined) return ''
  const costs = medianCosts(runs.map((one) => one.costs))
  const growth = runs.flatMap((one) => one.growth)
  const conditions = [...new Set(last.growth.map(({ condition }) => condition))]
  const cell = (engine: EngineName, condition: string): string => {
    const all = growth.filter((row) => row.engine === engine && row.condition === condition)
    return `${median(all.map(({ cost }) => cost)).toFixed(2)} ×, ${median(all.map((one) => one.rate)).toFixed(2)} ×`
  }
  const { machine, jobs } = last
  return [
    `Medians of ${runs.length} whole runs (${runs.map(({ date }) => date).join(', ')} UTC) with ${jobs.toLocaleString('en')} jobs of 200 bytes (SQLite 4, Postgres 3, Kafka 8 times as many), the lowest and highest rate in brackets: ${machine.processor}, ${machine.cores} cores, everything on one machine.`,
    '',
    '| | enqueue | run | server | a core of the server carries | one worker drains | four drain | a finished job takes |',
    '|---|---|---|---|---|---|---|---|',
    ...costs.map((cost) => costRow(cost, runs)),
    '',
    `| cost per job, and rate | ${costs.map(({ engine }) => TITLES[engine]).join(' | ')} |`,
    `|---|${costs.map(() => '---|').join('')}`,
    ...conditions.map((one) => `| ${one} | ${costs.map(({ engine }) => cell(engine, one)).join(' | ')} |`),
  ].join('\n')
}

export function writeTables(runs: readonly Measured[]): void {
  const page = readFileSync(PAGE, 'utf8')
  const between = /(<!-- measured -->\n)[\s\S]*?(\n<!-- \/measured -->)/
  writeFileSync(
    PAGE,
    page.replace(between, (_, before: string, behind: string) => before + tables(runs) + behind),
  )
}
