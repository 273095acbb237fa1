-- +goose Up

-- The search column has its text without accents (field.FoldForSearch), so that q finds a name with
-- and without them. The rows of before are changed by the same rule; the indexes stay.
UPDATE directories SET search = normalize(regexp_replace(normalize(search, NFKD), '[\u0300-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF]', '', 'g'), NFKC)
WHERE search ~ '[^\x01-\x7f]';
UPDATE groups SET search = normalize(regexp_replace(normalize(search, NFKD), '[\u0300-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF]', '', 'g'), NFKC)
WHERE search ~ '[^\x01-\x7f]';
UPDATE accounts SET search = normalize(regexp_replace(normalize(search, NFKD), '[\u0300-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF]', '', 'g'), NFKC)
WHERE search ~ '[^\x01-\x7f]';
