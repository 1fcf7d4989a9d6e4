#!/usr/bin/env node
// Plain JavaScript without static imports: old versions of Node can read it, and say what is needed instead of a stack.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    `error: Millrace needs Node 24.15 or newer, and this is Node ${process.versions.node}. Install a newer one from https://nodejs.org; in a clone, npm ci brings one for npm scripts.`,
  )
  process.exitCode = 2
} else {
  await import('./millrace.ts')
}
