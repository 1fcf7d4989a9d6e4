import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Pacer } from './pacer.ts'

/** Lets every promise that is settled be heard. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

test('many wishes are one run now and one after the rest', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    let runs = 0
    const pacer = new Pacer(async () => {
      runs += 1
    }, 1_000)
    for (let wish = 0; wish < 5; wish += 1) pacer.ask()
    mock.timers.tick(0)
    await settle()
    assert.equal(runs, 1)
    for (let wish = 0; wish < 5; wish += 1) pacer.ask()
    mock.timers.tick(999)
    await settle()
    assert.equal(runs, 1)
    mock.timers.tick(1)
    mock.timers.tick(0)
    await settle()
    assert.equal(runs, 2)
    mock.timers.tick(10_000)
    await settle()
    assert.equal(runs, 2)
    pacer.stop()
  } finally {
    mock.timers.reset()
  }
})

test('a wish while it runs is kept until it has rested', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const gate = Promise.withResolvers<void>()
    let runs = 0
    const pacer = new Pacer(() => {
      runs += 1
      return gate.promise
    }, 100)
    pacer.ask()
    mock.timers.tick(0)
    pacer.ask()
    mock.timers.tick(5_000)
    await settle()
    assert.equal(runs, 1)
    gate.resolve()
    await settle()
    mock.timers.tick(100)
    mock.timers.tick(0)
    assert.equal(runs, 2)
    pacer.stop()
  } finally {
    mock.timers.reset()
  }
})
