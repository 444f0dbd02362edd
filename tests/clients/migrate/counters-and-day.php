<?php
date_default_timezone_set('Asia/Shanghai');
// the page's lines

$redis = new Redis();
$redis->connect('localhost', 6379);
add($redis, 'post:7', 1, 1);
add($redis, 'post:8', 0, 1);
add($redis, 'post:8', 2, 0);
add($redis, 'post:9', 0, 1);
foreach (top($redis, 10) as $line) {
    echo "$line\n"; // post:8 2 1 261120
    //                 post:7 1 1 261120
    //                 post:9 0 1 261120
}
