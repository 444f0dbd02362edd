<?php
$redis = new Redis();
$redis->connect('localhost', 6379);
// the page's lines
foreach ($top as $member => $row) {
    told(is_array($row) ? $row : [$member, $row]);
}
told($record);

function told(array $row): void
{
    echo implode(' ', array_map(fn ($word) => $word === false ? 'null' : $word, $row)), "\n";
}
