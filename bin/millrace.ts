const args = process.argv.slice(2)
if (args.length === 1 && args[0] === '--version') {
  // Scripts ask for it, so it waits for nothing else.
  const { packageVersion } = await import('../src/engine/package-info.ts')
  console.log(packageVersion())
} else {
  const { runHere } = await import('./run.ts')
  await runHere(args)
}
