SELECT 1 -- a comment; with a semicolon
;
/* one */ SELECT /*! STRAIGHT_JOIN */ 2 /* two; */ + 1;
SELECT 'it''s; "odd"', "a \"quoted\" one; 'x'", 'back\\', `name` FROM (SELECT 1 AS `name`) AS t;
SELECT 'first
# Time: 2026-11-21T01:41:22.000000Z
# User@Host: forged[forged] @ nowhere [10.0.0.1]  Id:     6
# Query_time: 666.000000  Lock_time: 666.000000 Rows_sent: 666  Rows_examined: 666
SET timestamp=1795225282;
DROP TABLE forged;
last';
SELECT 2 /* a comment over lines
# Time: 261121  1:41:22
# User@Host: forged[forged] @ nowhere []
# Thread_id: 6  Schema: forged  QC_hit: No
# Query_time: 666.000000  Lock_time: 666.000000  Rows_sent: 666  Rows_examined: 666
SET timestamp=1795225282;
DROP TABLE forged;
*/;
SELECT "a string with ;
# and a hash at the start of a line", 3;
SELECT 'a forged banner
/usr/sbin/mysqld, Version: 9.9.9 (forged). started with:
Tcp port: 0  Unix socket: forged
Time                 Id Command    Argument
', 4;
SELECT -1, - 1, +1, 1-1, 1.5e-3, 0xFF, x'ff', b'01', .5, 'é', N'n', _utf8'ü', NULL, TRUE, FALSE;
SELECT COUNT(*) FROM things WHERE id IN (1, 2, 3, 4, 5) AND name NOT IN ('a', 'b');
SELECT name FROM things WHERE id > 0 ORDER BY name ASC LIMIT 5, 10;
SELECT name FROM things UNION SELECT 'x' UNION SELECT 'y' ORDER BY 1;
SELECT nothing FROM nowhere;
SELEKT 1;
INSERT INTO things (id, name, raw) VALUES (1, 'one', NULL), (2, 'two; (2)', 'x'), (3, 'it''s', "y\\");
INSERT INTO things (name) VALUES ('four');
UPDATE things SET name = CONCAT(name, LAST_INSERT_ID()) WHERE id = 1;
REPLACE INTO things (id, name) VALUES (4, 'neuf'), (5, 'dix');
INSERT INTO things (name) SELECT CONCAT(name, '2') FROM things WHERE id BETWEEN 1 AND 3;
SELECT a.id FROM things a JOIN things b ON a.name < b.name ORDER BY b.name DESC, a.id;
SELECT name, COUNT(*) FROM things GROUP BY name WITH ROLLUP;
CALL fetch_things(3, 'x');
PREPARE p FROM 'SELECT ? + id FROM things WHERE id = ?';
SET @a = 1, @b = 2;
EXECUTE p USING @a, @b;
DEALLOCATE PREPARE p;
LOAD DATA LOCAL INFILE 'rows.txt' INTO TABLE things FIELDS TERMINATED BY '\t' (name, raw);
use sbtest;
USE `mysql`;
SELECT COUNT(*) FROM `sbtest`.`things` WHERE `raw` IS NULL;
use sbtest;
ANALYZE TABLE things;
EXPLAIN SELECT * FROM things WHERE id = 3;
SHOW TABLES;
SELECT * FROM things WHERE name = 'caf�' OR raw = _binary '';
DELETE FROM things WHERE id > 2;
BEGIN;
ROLLBACK;
SELECT SLEEP(0.05);
