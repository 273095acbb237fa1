-- Adds generated accounts to a directory: the rows that the service would have
-- written. They have no password. Twenty at even distances have the given name,
-- city and score that the searches look for; no other account has them. The
-- settings bench.* are those of seed in scale.go.

-- Names made of syllables.
CREATE TEMP TABLE bench_names ON COMMIT DROP AS
SELECT array_agg(heads[1 + n % 15] || vowels[1 + n / 15 % 4] || heads[1 + n / 60] || vowels[1 + n % 4] || 'n' ORDER BY n) AS words
FROM generate_series(0, 899) n,
     (SELECT '{b,br,d,f,gr,h,k,l,m,n,p,r,st,t,v}'::text[] AS heads, '{a,e,i,o}'::text[] AS vowels) syllables;

-- For many accounts it is faster to make the indexes of the searches again than to
-- add to them. Those of constraints stay.
CREATE TEMP TABLE bench_indexes ON COMMIT DROP AS
SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
FROM pg_index i
WHERE i.indrelid IN ('accounts'::regclass, 'account_values'::regclass) AND current_setting('bench.count')::bigint > 10000
  AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid);
SET LOCAL maintenance_work_mem = '512MB';

DO $$
DECLARE
    batch CONSTANT bigint := 50000;
    total CONSTANT bigint := current_setting('bench.count');
    index record;
BEGIN
    FOR index IN TABLE bench_indexes LOOP
        EXECUTE 'DROP INDEX ' || index.name;
    END LOOP;

    FOR start IN 0 .. total - 1 BY batch LOOP
        CREATE TEMP TABLE bench_seed ON COMMIT DROP AS
        SELECT a.*, current_setting('bench.tenant')::uuid AS tenant, current_setting('bench.directory')::uuid AS directory,
               lpad(to_hex((extract(epoch FROM created) * 1000)::bigint), 12, '0') || '7' || substr(h, 1, 3)
                   || '8' || substr(h, 4, 15) AS id,
               CASE WHEN planted THEN 'Xerophila' ELSE initcap(words[1 + abs(hashint8extended(n, 1) % 300)]) END AS given,
               initcap(words[1 + abs(hashint8extended(n, 2) % 900)]) AS surname,
               CASE WHEN abs(hashint8extended(n, 3) % 5) = 0 THEN initcap(words[1 + abs(hashint8extended(n, 4) % 300)]) END AS middle,
               CASE WHEN planted THEN 'Zwiefaltenbach' ELSE initcap(words[1 + abs(hashint8extended(n, 5) % 200)]) END AS city,
               CASE WHEN planted THEN 5000 + n / every ELSE abs(hashint8extended(n, 6) % 1000) END AS score,
               ('{free,starter,team,business,enterprise}'::text[])[1 + abs(hashint8extended(n, 7) % 5)] AS plan,
               ('{ENABLED,ENABLED,ENABLED,ENABLED,ENABLED,ENABLED,ENABLED,DISABLED,DISABLED,UNVERIFIED}'::text[])
                   [1 + abs(hashint8extended(n, 8) % 10)] AS status
        FROM (SELECT n, md5(n || current_setting('bench.directory')) AS h, every, words, n % every = 0 AND n / every < 20 AS planted,
                     date_trunc('milliseconds', now() - interval '3 years' + interval '3 years' * (n::float8 / total)) AS created
              FROM (SELECT greatest(total / 20, 1) AS every, words FROM bench_names) settings,
                   LATERAL generate_series(start, least(start + batch, total) - 1) n) a;

        INSERT INTO accounts (tenant_id, id, directory_id, username, username_folded, email, email_folded, given_name, given_name_folded,
            middle_name, middle_name_folded, surname, surname_folded, full_name_folded, status, search, email_verification_status,
            password_modified_at, created_at, modified_at)
        SELECT tenant, id::uuid, directory, email, email, email, email, given, lower(given), middle, lower(coalesce(middle, '')),
            surname, lower(surname), lower(concat_ws(' ', given, middle, surname)), status,
            lower(concat_ws(E'\n', email, given, coalesce(middle, ''), surname)),
            CASE WHEN status = 'UNVERIFIED' THEN status ELSE 'VERIFIED' END, changed, created, changed
        FROM (SELECT *, lower(given || '.' || surname) || '.' || n || '@example.test' AS email,
                     date_trunc('milliseconds', created + (now() - created) * (abs(hashint8extended(n, 9) % 1000) / 1000.0)) AS changed
              FROM bench_seed) a;

        INSERT INTO login_names (tenant_id, directory_id, name, account_id)
        SELECT tenant, directory, lower(given || '.' || surname) || '.' || n || '@example.test' AS name, id::uuid FROM bench_seed ORDER BY name;

        INSERT INTO custom_data (tenant_id, owner_id, document, modified_at)
        SELECT tenant, id::uuid, format('{"plan":"%s","score":%s,"city":"%s","ref":"ref-%s"}', plan, score, city, n), created
        FROM bench_seed;

        INSERT INTO account_values (tenant_id, account_id, place, directory_id, path, element, text, number)
        SELECT tenant, id::uuid, place, directory, path, false, lower(text), number
        FROM bench_seed, LATERAL (VALUES (1, 'plan', plan, NULL::numeric), (2, 'score', score::text, score), (3, 'city', city, NULL),
            (4, 'ref', 'ref-' || n, NULL)) v (place, path, text, number);

        INSERT INTO account_counts AS c (tenant_id, directory_id, status, shard, n)
        SELECT tenant, directory, status, 0, count(*) FROM bench_seed GROUP BY tenant, directory, status
        ON CONFLICT (tenant_id, directory_id, status, shard) DO UPDATE SET n = c.n + excluded.n;

        DROP TABLE bench_seed;
        RAISE NOTICE '% of % accounts', least(start + batch, total), total;
    END LOOP;

    FOR index IN TABLE bench_indexes LOOP
        EXECUTE index.definition;
    END LOOP;
END $$;
