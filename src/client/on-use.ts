/** Code that is loaded when it is first used, because a process that only enqueues needs none of it. */
export const workerCode = loadedOnce(() => import('../worker/worker.ts'))
export const keeperCode = loadedOnce(() => import('../keeper/keeper.ts'))
export const searchCode = loadedOnce(() => import('./search.ts'))
export const workerIdCode = loadedOnce(() => import('../worker/worker-id.ts'))

/** Once it is loaded, a call takes no turn of the event loop: the simulation relies on it. */
function loadedOnce<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loading: Promise<Module> | null = null
  return () => {
    loading ??= load()
    return loading
  }
}
