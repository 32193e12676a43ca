"""From rows to topics: `sink` is what Spark calls, `rows` checks and cuts, `producing` sends, `exactly_once` does so in
transactions whose `markers` say which batches are written (`tasks`: what a task is, and what its marker says);
`foreach_batch` for results that change."""
