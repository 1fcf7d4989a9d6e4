/**
 * The worker classes of the document that the framework comes from, as a team that has written them brings them along. Where a
 * line differs from the document, docs/framework.md says why.
 */
import { BaseWorker, type HookedJob } from 'millrace/workloads/framework'

/** The hooks of the document's class, over the framework's, which counts and logs by itself. */
export abstract class RuvBotWorker<TData, TResult> extends BaseWorker<TData, TResult> {
  readonly durations: number[] = []

  override async onStart(job: HookedJob): Promise<void> {
    this.logger.info(`Starting job ${job.id}`, { bytes: JSON.stringify(job.data).length })
  }

  override async onComplete(job: HookedJob, _result: TResult): Promise<void> {
    this.durations.push(Date.now() - job.processedOn)
    this.logger.info(`Completed job ${job.id}`)
  }

  override async onFailed(job: HookedJob, error: Error, final: boolean): Promise<void> {
    this.logger.error(`Failed job ${job.id}`, { error: error.message })
    if (final) await this.alertOnFinalFailure(job, error)
  }

  override async onProgress(job: HookedJob, progress: number | object): Promise<void> {
    this.logger.debug(`Progress ${job.id}`, { progress })
  }

  private async alertOnFinalFailure(job: HookedJob, error: Error): Promise<void> {
    await this.metrics.alert({
      severity: 'warning',
      title: `Worker ${this.type} final failure`,
      message: `Job ${job.id} failed after ${job.attemptsMade} attempts: ${error.message}`,
      tags: { jobType: this.type, jobId: job.id, tenantId: this.tenantContext?.orgId },
    })
  }
}
