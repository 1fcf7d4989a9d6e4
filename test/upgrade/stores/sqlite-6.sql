-- Written by commit d831645.
-- {"01M7MZ8YXEZAGYZ0XEDZNS4JKF":"completed","01M7MZ8YXZTCRW28B9G1JCFTQZ":"dead_letter","01M7MZ8Z2KJ8BHZ73GWJ8SRN5E":"dead_letter","01M7MZ8Z314JTN21JX8RS92HFR":"completed","01M7MZ8Z6B1MEMDVJ3ZHRGJB83":"completed","01M7MZ8Z6K9C5QW9T00G9BBSP0":"completed","01M7MZ8Z6NX28BHAP6Y40H57C7":"cancelled","01M7MZ8Z8FFDGEMJF0XK9BC6EB":"superseded","01M7MZ8Z9P8AKP6YW8NAHAZTET":"completed","01M7MZ8ZAZN07SPDWM7HJCBNNX":"completed","01M7MZ8ZB6SYJMKDPAZE1BKA4N":"completed","01M7MZ8ZBNRDZGBQJNYJRQT6KR":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:41:16.156Z');
INSERT INTO millrace_schema VALUES(2,'presence','2026-11-17T14:41:16.156Z');
INSERT INTO millrace_schema VALUES(3,'outbox','2026-11-17T14:41:16.156Z');
INSERT INTO millrace_schema VALUES(4,'clock','2026-11-17T14:41:16.156Z');
INSERT INTO millrace_schema VALUES(5,'latest-keys','2026-11-17T14:41:16.156Z');
INSERT INTO millrace_schema VALUES(6,'records','2026-11-17T14:41:16.156Z');
CREATE TABLE job_queue (
  id TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'in_progress', 'completed', 'failed', 'dead_letter')),
  priority INTEGER NOT NULL DEFAULT 5 CHECK (priority >= 1 AND priority <= 10),
  scheduled_at TEXT NOT NULL,
  lease_owner TEXT,
  lease_until TEXT,
  payload TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  attempts INTEGER NOT NULL DEFAULT 0,
  max_retries INTEGER NOT NULL DEFAULT 3,
  error TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  started_at TEXT,
  completed_at TEXT,
  result TEXT
, lease_token TEXT, waiting_for INTEGER NOT NULL DEFAULT 0, latest_key TEXT, latest_seq INTEGER, predecessors TEXT, tenant TEXT, options TEXT, payload_version INTEGER NOT NULL DEFAULT 1, progress TEXT, duration_ms INTEGER, completed_by TEXT, error_record TEXT, released_key TEXT, replays INTEGER NOT NULL DEFAULT 0, ended TEXT CHECK (ended IN ('cancelled', 'superseded', 'discarded')));
INSERT INTO job_queue VALUES('01M7MZ8YXEZAGYZ0XEDZNS4JKF','recorded','completed',5,'2026-11-17T14:41:16.216Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:41:16.216Z','2026-11-17T14:41:16.435Z','2026-11-17T14:41:16.428Z','2026-11-17T14:41:16.435Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,2,'vm:11899:0301c552',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8YXZTCRW28B9G1JCFTQZ','recorded','dead_letter',5,'2026-11-17T14:41:16.445Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:41:16.224Z','2026-11-17T14:41:16.457Z','2026-11-17T14:41:16.445Z','2026-11-17T14:41:16.457Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/d831645/src/worker/context.ts:105:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/d831645/src/worker/context.ts:99:27)\n    at #call (file:///tmp/upg/old/d831645/src/worker/execution.ts:114:54)\n    at #run (file:///tmp/upg/old/d831645/src/worker/execution.ts:84:15)\n    at Execution.start (file:///tmp/upg/old..."}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8Z2KJ8BHZ73GWJ8SRN5E','recorded','dead_letter',5,'2026-11-17T14:41:16.445Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:41:16.371Z','2026-11-17T14:41:16.457Z','2026-11-17T14:41:16.445Z','2026-11-17T14:41:16.457Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/d831645/src/worker/context.ts:105:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/d831645/src/worker/context.ts:99:27)\n    at #call (file:///tmp/upg/old/d831645/src/worker/execution.ts:114:54)\n    at #run (file:///tmp/upg/old/d831645/src/worker/execution.ts:84:15)\n    at Execution.start (file:///tmp/upg/old..."}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8Z314JTN21JX8RS92HFR','recorded','in_progress',5,'2026-11-17T14:41:16.386Z','vm:11899:0301c552','2026-11-17T14:42:16.428Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:41:16.386Z','2026-11-17T14:41:16.428Z','2026-11-17T14:41:16.428Z',NULL,NULL,'tT2NlA-B-MaL',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8Z6B1MEMDVJ3ZHRGJB83','later','queued',1,'2026-11-17T14:41:16.494Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:41:16.494Z','2026-11-17T14:41:16.494Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8Z6K9C5QW9T00G9BBSP0','later','queued',5,'2026-11-17T14:42:16.500Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:41:16.500Z','2026-11-17T14:41:16.500Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8Z6NX28BHAP6Y40H57C7','later','dead_letter',5,'2026-11-17T14:41:16.501Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:41:16.501Z','2026-11-17T14:41:16.522Z',NULL,'2026-11-17T14:41:16.522Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZ8Z9P8AKP6YW8NAHAZTET','later','queued',5,'2026-11-17T14:41:16.586Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:41:16.598Z','2026-11-17T14:41:16.598Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8Z8FFDGEMJF0XK9BC6EB','later','dead_letter',5,'2026-11-17T14:41:16.586Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:41:16.586Z','2026-11-17T14:41:16.598Z',NULL,'2026-11-17T14:41:16.598Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZ8ZAZN07SPDWM7HJCBNNX','recorded','queued',5,'2026-11-17T14:41:16.639Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:41:16.639Z','2026-11-17T14:41:16.639Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8ZB6SYJMKDPAZE1BKA4N','later','queued',5,'2026-11-17T14:42:16.646Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:41:16.646Z','2026-11-17T14:41:16.646Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8ZBNRDZGBQJNYJRQT6KR','later','queued',5,'2026-11-17T14:41:16.661Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:41:16.661Z','2026-11-17T14:41:16.661Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZ8ZB6SYJMKDPAZE1BKA4N"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZ8YXZTCRW28B9G1JCFTQZ','2026-11-17T14:41:16.435Z','failed',1,'vm:11899:0301c552','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926476428}');
INSERT INTO job_events VALUES(2,'01M7MZ8YXZTCRW28B9G1JCFTQZ','2026-11-17T14:41:16.435Z','retried',1,'vm:11899:0301c552','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZ8Z2KJ8BHZ73GWJ8SRN5E','2026-11-17T14:41:16.435Z','failed',1,'vm:11899:0301c552','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926476428}');
INSERT INTO job_events VALUES(4,'01M7MZ8Z2KJ8BHZ73GWJ8SRN5E','2026-11-17T14:41:16.435Z','retried',1,'vm:11899:0301c552','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZ8YXZTCRW28B9G1JCFTQZ','2026-11-17T14:41:16.457Z','failed',2,'vm:11899:0301c552','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926476445}');
INSERT INTO job_events VALUES(6,'01M7MZ8YXZTCRW28B9G1JCFTQZ','2026-11-17T14:41:16.457Z','dead',2,'vm:11899:0301c552',NULL);
INSERT INTO job_events VALUES(7,'01M7MZ8Z2KJ8BHZ73GWJ8SRN5E','2026-11-17T14:41:16.457Z','failed',2,'vm:11899:0301c552','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926476445}');
INSERT INTO job_events VALUES(8,'01M7MZ8Z2KJ8BHZ73GWJ8SRN5E','2026-11-17T14:41:16.457Z','dead',2,'vm:11899:0301c552',NULL);
INSERT INTO job_events VALUES(9,'01M7MZ8Z6NX28BHAP6Y40H57C7','2026-11-17T14:41:16.522Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZ8Z8FFDGEMJF0XK9BC6EB','2026-11-17T14:41:16.598Z','superseded',0,NULL,'{"by":"01M7MZ8Z9P8AKP6YW8NAHAZTET"}');
CREATE TABLE job_latest (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq INTEGER NOT NULL, idle_since TEXT,
  PRIMARY KEY (type, latest_key)
) WITHOUT ROWID;
INSERT INTO job_latest VALUES('later','document-2',2,NULL);
INSERT INTO job_latest VALUES('recorded','document-1',2,NULL);
CREATE TABLE job_after (
  after_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  if_dead TEXT NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (after_id, job_id)
) WITHOUT ROWID;
INSERT INTO job_after VALUES('01M7MZ8ZB6SYJMKDPAZE1BKA4N','01M7MZ8ZBNRDZGBQJNYJRQT6KR','wait',1);
CREATE TABLE job_audit (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  action TEXT NOT NULL,
  job_id TEXT NOT NULL,
  type TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT
, subject TEXT);
INSERT INTO job_audit VALUES(1,'2026-11-17T14:41:16.755Z','ann','recorded','pause','','paused','{}',NULL,NULL);
CREATE TABLE job_starts (
  type TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  starts INTEGER NOT NULL
);
CREATE TABLE millrace_outbox (
  seq INTEGER PRIMARY KEY,
  outbox TEXT NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  added_at_ms INTEGER NOT NULL
);
CREATE TABLE millrace_clock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  timeline TEXT NOT NULL,
  offset_ms REAL NOT NULL,
  stepped_at_ms INTEGER,
  step_ms INTEGER
);
INSERT INTO millrace_clock VALUES(1,'linux 4ef89e37-72c4-4c74-8862-a966e4a15b74 time:[4026531834]',1794923135395.4504394,NULL,NULL);
CREATE TABLE millrace_records (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  revision TEXT NOT NULL,
  body TEXT NOT NULL,
  saved_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO millrace_records VALUES('leader','keeper:reap+schedules+retention','75c1f409-1a86-4a28-91dc-921185b1e950','{"holder":"vm:11899:0301c552","number":1,"leaseMs":7500}',1794926476397,1794926483897);
INSERT INTO millrace_records VALUES('pause','paused','5dc040e0-43e6-4389-80fd-0784afdc95c9','{"who":"ann","reason":"recorded"}',1794926476747,NULL);
INSERT INTO millrace_records VALUES('schedule','nightly','ff1343ae-43ee-42bf-bb8a-46acfeeb62c1','{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"missedTicks":0,"lastTickMs":null,"lastJobId":null,"declared":null,"nextAtMs":1794970800000}',1794926476735,NULL);
INSERT INTO millrace_records VALUES('worker',replace('vm:11899:0301c552\nrecorded','\n',char(10)),'','{"timestamp":"2026-11-17T14:41:16.397Z","status":"RUNNING","last_message_at":null,"consumer_lag":null,"work":{"host":"vm","pid":11899,"process":"f44ddcf7-31ef-443b-a7d4-af58938fc44b","startedAtMs":1794926476395,"concurrency":4,"running":0,"jobs":[]}}',1794926476398,1794926506398);
CREATE INDEX idx_job_queue_dequeue ON job_queue(status, priority, scheduled_at) WHERE status = 'queued';
CREATE INDEX idx_job_queue_lease_expiry ON job_queue(lease_until) WHERE status = 'in_progress';
CREATE INDEX idx_job_queue_type ON job_queue(type, status);
CREATE INDEX idx_job_queue_idempotency ON job_queue(idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX idx_job_queue_claim ON job_queue(type, priority, scheduled_at)
  WHERE status = 'queued' AND waiting_for = 0;
CREATE INDEX idx_job_queue_latest ON job_queue(type, latest_key, status) WHERE latest_key IS NOT NULL;
CREATE INDEX idx_job_queue_dead ON job_queue(completed_at, id, type)
  WHERE status = 'dead_letter' AND ended IS NULL;
CREATE TRIGGER job_queue_updated_at
AFTER UPDATE OF id, type, status, priority, scheduled_at, lease_owner, lease_until, payload, idempotency_key, attempts,
  max_retries, error, created_at, started_at, completed_at, result ON job_queue
FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at AND NEW.lease_token IS OLD.lease_token
BEGIN
  UPDATE job_queue SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE rowid = NEW.rowid;
END;
CREATE INDEX idx_job_events_job ON job_events(job_id, seq);
CREATE INDEX idx_job_after_job ON job_after(job_id, held);
CREATE INDEX idx_job_audit_job ON job_audit(job_id, seq);
CREATE TRIGGER job_audit_kept BEFORE DELETE ON job_audit
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;
CREATE TRIGGER job_audit_unchanged BEFORE UPDATE ON job_audit
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;
CREATE INDEX idx_job_starts_type ON job_starts(type, at_ms);
CREATE INDEX idx_millrace_outbox_order ON millrace_outbox(outbox, seq);
COMMIT;

