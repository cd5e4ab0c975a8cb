"""Every flag of `vllm serve` 0.32 by what it takes, as its --help lists them.

The kinds are read from the names and from vLLM's configuration classes; a flag whose values are
not checked here takes any word.
"""

from __future__ import annotations

SWITCHES = """
    allow-credentials allow-deprecated-quantization async-scheduling cohere-is-reasoning-model
    cudagraph-metrics data-parallel-external-lb data-parallel-hybrid-lb dcp-q-replicate
    disable-cascade-attn disable-chunked-mm-input disable-custom-all-reduce disable-fastapi-docs
    disable-hybrid-kv-cache-manager disable-nccl-for-dp-synchronization disable-sliding-window
    disable-uvicorn-access-log enable-auto-tool-choice enable-batch-sharded-sampling
    enable-chunked-prefill enable-cumem-allocator enable-dbo enable-elastic-ep
    enable-ep-weight-filter enable-eplb enable-expert-parallel enable-fault-tolerance
    enable-flash-late-interaction enable-flashinfer-autotune enable-force-include-usage
    enable-hc-sp enable-layerwise-nvtx-tracing enable-log-deltas enable-log-outputs
    enable-log-requests enable-logging-iteration-details enable-lora
    enable-mamba-cache-stochastic-rounding enable-mamba-shared-prefix-checkpoint
    enable-mfu-metrics enable-mixed-moe-lora-format enable-mm-embeds enable-moe-shared-loras
    enable-nccl-comm-suspend enable-offline-docs enable-per-request-metrics enable-prefix-caching
    enable-prompt-embeds enable-prompt-tokens-details enable-request-id-headers
    enable-return-routed-experts enable-scale-out enable-server-load-tracking
    enable-shm-tensor-arena enable-sleep-mode enable-ssl-refresh enable-tokenizer-info-endpoint
    enable-tower-connector-lora enable-trace-replay enforce-eager
    exclude-tools-when-tool-choice-none fail-on-environ-validation fully-sharded-loras
    interleave-mm-strings jit-monitor-verbose kv-cache-metrics kv-sharing-fast-prefill
    language-model-only log-error-stack long-prefill-token-threshold-adaptive
    mm-device-do-normalize mm-encoder-only numa-bind ray-workers-use-nsight return-sampling-mask
    return-tokens-as-token-ids scheduler-reserve-full-isl skip-mm-profiling skip-tokenizer-init
    sleep-mode-offload-cudagraph specialize-active-lora swa-bounded-replay tokens-only
    trust-remote-code trust-request-chat-template trust-request-mm-kwargs use-fp64-gumbel
    use-replayssm use-tqdm-on-load
""".split()  # noqa: SIM905 (names read better as words)
"""`--x` and `--no-x`."""

MARKS = """
    aggregate-engine-logging data-parallel-multi-port-external-lb disable-log-stats grpc headless
""".split()  # noqa: SIM905
"""`--x` alone."""

INTEGERS = """
    api-server-count block-size cp-kv-cache-interleave-size cpu-distributed-timeout-seconds
    data-parallel-rank data-parallel-rpc-port data-parallel-size data-parallel-size-local
    data-parallel-start-rank data-parallel-supervisor-port dbo-decode-token-threshold
    dbo-prefill-token-threshold dcp-kv-cache-interleave-size decode-context-parallel-size
    distributed-timeout-seconds dp-supervisor-probe-failure-threshold dp-sync-interval
    elastic-ep-max-dp-size grpc-port h11-max-header-count h11-max-incomplete-event-size
    long-prefill-token-threshold mamba-block-size mamba-cache-philox-rounds master-port
    max-cpu-loras max-cudagraph-capture-size max-log-len max-logprobs max-lora-rank max-loras
    max-num-active-seqs max-num-queued-reqs max-num-queued-tokens max-num-seqs
    max-parallel-loading-workers mm-shm-cache-max-object-size-mb nnodes node-rank
    num-gpu-blocks-override offload-group-size offload-num-in-group offload-prefetch-step
    optimization-level pipeline-parallel-size port prefill-context-parallel-size
    prefill-schedule-interval renderer-num-workers replayssm-buffer-len
    safetensors-prefetch-block-size safetensors-prefetch-num-threads seed shutdown-timeout
    spec-tokens ssl-cert-reqs stream-interval tensor-parallel-size ubatch-size
""".split()  # noqa: SIM905

HUMAN_INTEGERS = """
    kv-cache-memory-bytes max-num-batched-tokens max-num-scheduled-tokens
""".split()  # noqa: SIM905
"""Integers that may end in k, K, m, M, g or G: 1k is 1000, 1K is 1024."""

NUMBERS = """
    cpu-offload-gb device-memory-utilization dp-supervisor-probe-interval-s
    dp-supervisor-probe-timeout-s gpu-memory-utilization kv-cache-metrics-sample
    kv-offloading-size mm-ipc-gpu-memory-gb mm-processor-cache-gb sse-keep-alive-interval
    video-pruning-rate watermark
""".split()  # noqa: SIM905

JSON_VALUES = """
    additional-config allowed-headers allowed-methods allowed-origins attention-config
    aux-output-config compilation-config default-chat-template-kwargs default-mm-loras
    diffusion-config ec-manager-config ec-transfer-config engram-config eplb-config
    fault-tolerance-config hf-overrides kernel-config kv-events-config kv-transfer-config
    limit-mm-per-prompt media-io-kwargs mm-processor-kwargs model-class-overrides
    model-loader-extra-config override-generation-config pooler-config profiler-config
    quantization-config reasoning-config speculative-config structured-outputs-config
    watermark-config weight-transfer-config
""".split()  # noqa: SIM905

LISTS = """
    allowed-media-domains api-key collect-detailed-traces cpu-offload-params
    cudagraph-capture-sizes custom-histogram-buckets device-ids
    disable-access-log-for-endpoints ignore-patterns kv-cache-dtype-skip-layers
    logits-processors lora-modules lora-target-modules max-lora-cls-labels middleware
    numa-bind-cpus numa-bind-nodes offload-params served-model-name sleep-preserve-parameter-names
""".split()  # noqa: SIM905
"""One word or more."""

CHOICES = {
    "chat-template-content-format": ("auto", "openai", "string"),
    "convert": ("auto", "classify", "embed", "none", "reward"),
    "distributed-executor-backend": ("external_launcher", "mp", "ray", "uni"),
    "dtype": ("auto", "bfloat16", "float", "float16", "float32", "half"),
    "runner": ("auto", "draft", "generate", "pooling"),
    "scheduling-policy": ("fcfs", "priority"),
    "uvicorn-log-level": ("critical", "debug", "error", "info", "trace", "warning"),
}

WORDS = """
    all2all-backend allowed-local-media-path anthropic-disabled-thinking-effort attention-backend
    chat-template code-revision cohere-format config config-format data-parallel-address
    data-parallel-backend dcp-comm-backend download-dir expert-placement-strategy fingerprint-mode
    fingerprint-value gdn-prefill-backend generation-config hf-config-path hf-token host
    io-processor-plugin ir-op-priority jit-monitor-mode kda-decode-backend kda-prefill-backend
    kv-cache-dtype kv-offloading-backend linear-backend load-format log-config-file log-level
    logging-config logprobs-mode lora-dtype mamba-backend mamba-cache-dtype mamba-cache-mode
    mamba-ssm-cache-dtype mamba-ssu-algorithm master-addr mm-encoder-attn-backend
    mm-encoder-attn-dtype mm-encoder-fp8-scale-path mm-encoder-fp8-scale-save-margin
    mm-encoder-fp8-scale-save-path mm-encoder-tp-mode mm-hasher-algorithm mm-processor-cache-type
    mm-processor-device mm-tensor-ipc model model-impl moe-backend offload-backend
    otlp-traces-endpoint per-request-spec-decode-metrics performance-mode
    prefix-cache-retention-interval prefix-caching-hash-algo prefix-match-unit
    pt-load-map-location quantization reasoning-parser reasoning-parser-plugin response-role
    revision root-path safetensors-load-strategy scheduler-cls
    show-hidden-metrics-for-version sparse-indexer-topk-backend spec-method spec-model
    ssl-ca-certs ssl-certfile ssl-ciphers ssl-keyfile tokenizer tokenizer-mode tokenizer-revision
    tool-call-parser tool-parser-plugin tool-server tool-strict-level uds video-pruning-method
    worker-cls worker-extension-cls
""".split()  # noqa: SIM905

SHORT = {
    "data-parallel-size": "-dp",
    "pipeline-parallel-size": "-pp",
    "quantization": "-q",
    "tensor-parallel-size": "-tp",
}
