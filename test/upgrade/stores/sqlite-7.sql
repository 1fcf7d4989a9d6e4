-- Written by commit 2909923.
-- {"01M7MZVR9A7524G37SM4SE17M2":"completed","01M7MZVRAKPSBZX40ARQA7MTT4":"dead_letter","01M7MZVRAS76MMHXKPBR4BVAE7":"dead_letter","01M7MZVRAZRD4P0DND2Z07E48E":"completed","01M7MZVRB2T0ZEB56D6XQB06QN":"superseded","01M7MZVRKWJ7HPYEWMW97MPJAT":"completed","01M7MZVRMAXWZZR2GSC1140J3D":"completed","01M7MZVRMKB4VP5K7VSPK0D0MH":"cancelled","01M7MZVRN3HMSX0R0MHVN6G3EV":"superseded","01M7MZVRN5HEED50WMCRP4HBK2":"completed","01M7MZVRP5Y8R81SFXVBKHN1W5":"completed","01M7MZVRR408M9H51Y39GRWJF8":"completed","01M7MZVRRWYGR16ZMCJ9TW8BKB":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:51:31.924Z');
INSERT INTO millrace_schema VALUES(2,'presence','2026-11-17T14:51:31.924Z');
INSERT INTO millrace_schema VALUES(3,'outbox','2026-11-17T14:51:31.924Z');
INSERT INTO millrace_schema VALUES(4,'clock','2026-11-17T14:51:31.924Z');
INSERT INTO millrace_schema VALUES(5,'latest-keys','2026-11-17T14:51:31.924Z');
INSERT INTO millrace_schema VALUES(6,'records','2026-11-17T14:51:31.924Z');
INSERT INTO millrace_schema VALUES(7,'ended-jobs','2026-11-17T14:51:31.924Z');
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
INSERT INTO job_queue VALUES('01M7MZVR9A7524G37SM4SE17M2','recorded','completed',5,'2026-11-17T14:51:32.043Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:51:32.043Z','2026-11-17T14:51:32.240Z','2026-11-17T14:51:32.173Z','2026-11-17T14:51:32.240Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,1,'vm:25963:dfbaa417',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRAKPSBZX40ARQA7MTT4','recorded','dead_letter',5,'2026-11-17T14:51:32.250Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:32.051Z','2026-11-17T14:51:32.320Z','2026-11-17T14:51:32.259Z','2026-11-17T14:51:32.320Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/2909923/src/worker/context.ts:105:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/2909923/src/worker/context.ts:99:27)\n    at #call (file:///tmp/upg/old/2909923/src/worker/execution.ts:114:54)\n    at #run (file:///tmp/upg/old/2909923/src/worker/execution.ts:84:15)\n    at Execution.start (file:///tmp/upg/old..."}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRAS76MMHXKPBR4BVAE7','recorded','dead_letter',5,'2026-11-17T14:51:32.250Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:32.057Z','2026-11-17T14:51:32.320Z','2026-11-17T14:51:32.259Z','2026-11-17T14:51:32.320Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/2909923/src/worker/context.ts:105:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/2909923/src/worker/context.ts:99:27)\n    at #call (file:///tmp/upg/old/2909923/src/worker/execution.ts:114:54)\n    at #run (file:///tmp/upg/old/2909923/src/worker/execution.ts:84:15)\n    at Execution.start (file:///tmp/upg/old..."}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRAZRD4P0DND2Z07E48E','recorded','in_progress',5,'2026-11-17T14:51:32.063Z','vm:25963:dfbaa417','2026-11-17T14:52:32.173Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:32.063Z','2026-11-17T14:51:32.173Z','2026-11-17T14:51:32.173Z',NULL,NULL,'hcMLTXcbFfmM',0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRB2T0ZEB56D6XQB06QN','recorded','in_progress',5,'2026-11-17T14:51:32.067Z','vm:25963:dfbaa417','2026-11-17T14:52:32.241Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:32.067Z','2026-11-17T14:51:32.241Z','2026-11-17T14:51:32.241Z',NULL,NULL,'nXOnnZBMfNyQ',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRKWJ7HPYEWMW97MPJAT','later','queued',1,'2026-11-17T14:51:32.348Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:51:32.348Z','2026-11-17T14:51:32.348Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRMAXWZZR2GSC1140J3D','later','queued',5,'2026-11-17T14:52:32.362Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:51:32.362Z','2026-11-17T14:51:32.362Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRMKB4VP5K7VSPK0D0MH','later','dead_letter',5,'2026-11-17T14:51:32.372Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:51:32.372Z','2026-11-17T14:51:32.374Z',NULL,'2026-11-17T14:51:32.374Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZVRN5HEED50WMCRP4HBK2','later','queued',5,'2026-11-17T14:51:32.388Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:51:32.390Z','2026-11-17T14:51:32.390Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRN3HMSX0R0MHVN6G3EV','later','dead_letter',5,'2026-11-17T14:51:32.388Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:51:32.388Z','2026-11-17T14:51:32.390Z',NULL,'2026-11-17T14:51:32.390Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZVRP5Y8R81SFXVBKHN1W5','recorded','queued',5,'2026-11-17T14:51:32.421Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:51:32.421Z','2026-11-17T14:51:32.421Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRR408M9H51Y39GRWJF8','later','queued',5,'2026-11-17T14:52:32.485Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:51:32.485Z','2026-11-17T14:51:32.485Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVRRWYGR16ZMCJ9TW8BKB','later','queued',5,'2026-11-17T14:51:32.508Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:51:32.508Z','2026-11-17T14:51:32.508Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZVRR408M9H51Y39GRWJF8"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZVRAKPSBZX40ARQA7MTT4','2026-11-17T14:51:32.240Z','failed',1,'vm:25963:dfbaa417','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927092173}');
INSERT INTO job_events VALUES(2,'01M7MZVRAKPSBZX40ARQA7MTT4','2026-11-17T14:51:32.240Z','retried',1,'vm:25963:dfbaa417','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZVRAS76MMHXKPBR4BVAE7','2026-11-17T14:51:32.240Z','failed',1,'vm:25963:dfbaa417','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927092173}');
INSERT INTO job_events VALUES(4,'01M7MZVRAS76MMHXKPBR4BVAE7','2026-11-17T14:51:32.240Z','retried',1,'vm:25963:dfbaa417','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZVRAKPSBZX40ARQA7MTT4','2026-11-17T14:51:32.320Z','failed',2,'vm:25963:dfbaa417','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927092259}');
INSERT INTO job_events VALUES(6,'01M7MZVRAKPSBZX40ARQA7MTT4','2026-11-17T14:51:32.320Z','dead',2,'vm:25963:dfbaa417',NULL);
INSERT INTO job_events VALUES(7,'01M7MZVRAS76MMHXKPBR4BVAE7','2026-11-17T14:51:32.320Z','failed',2,'vm:25963:dfbaa417','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927092259}');
INSERT INTO job_events VALUES(8,'01M7MZVRAS76MMHXKPBR4BVAE7','2026-11-17T14:51:32.320Z','dead',2,'vm:25963:dfbaa417',NULL);
INSERT INTO job_events VALUES(9,'01M7MZVRMKB4VP5K7VSPK0D0MH','2026-11-17T14:51:32.374Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZVRN3HMSX0R0MHVN6G3EV','2026-11-17T14:51:32.390Z','superseded',0,NULL,'{"by":"01M7MZVRN5HEED50WMCRP4HBK2"}');
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
INSERT INTO job_after VALUES('01M7MZVRR408M9H51Y39GRWJF8','01M7MZVRRWYGR16ZMCJ9TW8BKB','wait',1);
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
INSERT INTO job_audit VALUES(1,'2026-11-17T14:51:32.597Z','ann','recorded','pause','','paused','{}',NULL,NULL);
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
INSERT INTO millrace_clock VALUES(1,'linux 4ef89e37-72c4-4c74-8862-a966e4a15b74 time:[4026531834]',1794923135397.2160644,NULL,NULL);
CREATE TABLE millrace_records (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  revision TEXT NOT NULL,
  body TEXT NOT NULL,
  saved_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO millrace_records VALUES('leader','keeper:reap+schedules+retention','5e29675e-4784-4bc1-8f60-ab3cc6cbc171','{"holder":"vm:25963:dfbaa417","number":1,"leaseMs":7500}',1794927092105,1794927099605);
INSERT INTO millrace_records VALUES('pause','paused','dc16847e-96c2-41ea-b777-05ec40241019','{"who":"ann","reason":"recorded"}',1794927092588,NULL);
INSERT INTO millrace_records VALUES('schedule','nightly','dd20d7a8-2ad4-49f2-b096-613c2a4563b5','{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"missedTicks":0,"lastTickMs":null,"lastJobId":null,"declared":null,"nextAtMs":1794970800000}',1794927092582,NULL);
INSERT INTO millrace_records VALUES('worker',replace('vm:25963:dfbaa417\nrecorded','\n',char(10)),'','{"timestamp":"2026-11-17T14:51:32.105Z","status":"RUNNING","last_message_at":null,"consumer_lag":null,"work":{"host":"vm","pid":25963,"process":"8e02e9ae-3197-4e12-9154-8f78778ed35b","startedAtMs":1794927092103,"concurrency":4,"running":0,"jobs":[]}}',1794927092172,1794927122172);
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
CREATE INDEX idx_job_queue_ended ON job_queue(type, ended) WHERE status = 'dead_letter';
COMMIT;

