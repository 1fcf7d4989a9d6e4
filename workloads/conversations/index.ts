export { type CreateJob, calculateBackoff, JobQueueRepository, type RepositoryOptions } from './job-queue-repository.ts'
