"""A primeira tela."""

WORDS = {
    "overview.title": "Visão geral",
    "overview.cluster_id": "Cluster {id}",
    "overview.healthy": "Saudável: todas as réplicas em sincronia (brokers: {brokers}, partições: {partitions})",
    "overview.problems": "Algo precisa de atenção ({count})",
    "overview.brokers": "Brokers",
    "overview.topics": "Tópicos",
    "overview.partitions": "Partições",
    "overview.groups": "Grupos",
    "overview.size": "Tamanho em disco",
    "overview.records_in": "Registros entrando / s",
    "overview.records_out": "Registros lidos / s",
    "overview.bytes_in": "Bytes entrando / s",
    "overview.bytes_out": "Bytes saindo / s",
    "overview.requests": "Requisições / s",
    "overview.lag": "Atraso de todos os grupos",
    "overview.lag_s": "Maior atraso",
    "overview.in": "entrando",
    "overview.out": "lidos",
    "overview.chart_records": "Registros por segundo",
    "overview.chart_bytes": "Bytes por segundo",
    "overview.chart_requests": "Requisições por segundo",
    "overview.chart_lag": "Atraso de todos os grupos, em registros",
    "overview.chart_lag_s": "Maior atraso de um grupo, em tempo",
    "overview.id": "Id",
    "overview.address": "Endereço",
    "overview.rack": "Rack",
    "overview.state": "Estado",
    "overview.leaders": "Lidera",
    "overview.disk": "Disco usado",
    "overview.serves": "atende",
    "overview.controls": "atende, controlador",
    "overview.silent": "não responde",
    "overview.advice": "Um exame mais atento",
    "overview.examine": "Examinar agora",
    "overview.advised": "Examinado às {at}",
    "overview.no_advice": (
        "Configurações, equilíbrio, discos e relógios ainda não foram examinados. Leva alguns segundos e não muda "
        "nada."
    ),
    "overview.nothing_found": "Nada de errado ou imprudente foi encontrado.",
    "overview.no_controller": "O cluster não tem controlador.",
    "overview.no_controller_todo": (
        "Líderes não mudam e tópicos não são criados até que um seja eleito. Se durar mais que alguns segundos, "
        "veja os logs dos brokers e o ZooKeeper."
    ),
    "overview.missing_brokers": "Faltam brokers que deveriam guardar partições: {named}",
    "overview.missing_brokers_todo": "Inicie-os novamente. Um que se perdeu de vez é substituído na página Cluster.",
    "overview.silent_brokers": "Brokers não respondem ao console: {named}",
    "overview.silent_brokers_todo": (
        "Podem estar iniciando, parando ou travados, ou o endereço anunciado não é alcançável daqui."
    ),
    "overview.offline": "{count} partições não têm líder: {named}",
    "overview.offline_todo": "Ninguém pode escrever nem ler nelas. Inicie os brokers que têm suas réplicas.",
    "overview.below_min_isr": "{count} partições têm menos réplicas em sincronia que min.insync.replicas: {named}",
    "overview.below_min_isr_todo": (
        "Produtores com acks=all são recusados nelas. Inicie os brokers ausentes ou veja por que estão atrasados."
    ),
    "overview.under_replicated": "{count} partições têm réplicas fora de sincronia: {named}",
    "overview.under_replicated_todo": (
        "Nada se perdeu, mas restam menos cópias. Deve acabar sozinho quando todos os brokers voltarem."
    ),
    "overview.lost": (
        "Os metadados de {count} partições de {named} podem estar perdidos: restam apenas logs que ninguém "
        "reclama."
    ),
    "overview.lost_todo": "Não exclua nada. Os logs podem voltar a ser um tópico.",
    "overview.damaged": "{count} logs não podem ser lidos em algum offset: {named}",
    "overview.damaged_todo": "Execute penstock log check nesse broker; outra réplica pode ter o que falta.",
    "overview.failed_directories": "Diretórios de log falharam: {named}",
    "overview.failed_directories_todo": "Conserte ou troque o disco e inicie o broker novamente.",
    "overview.without_session": "Brokers sem sessão com o ZooKeeper: {named}",
    "overview.without_session_todo": "Eles seguem com o que sabiam. Veja se alcançam o ZooKeeper.",
    "overview.disagreeing": "Brokers discordam sobre quem está no cluster: {named}",
    "overview.disagreeing_todo": "Deve passar em segundos. Se não passar, reinicie o que difere.",
    "overview.disk_full": "Discos quase cheios nos brokers {named}",
    "overview.disk_full_todo": "Reduza a retenção, exclua o desnecessário ou adicione um disco ou um broker.",
    "overview.not_preferred": (
        "{count} partições não são lideradas pela réplica preferida, e os líderes estão mal distribuídos: {named}"
    ),
    "overview.not_preferred_todo": "Eleja os líderes preferidos na página Cluster. Custa velocidade, não segurança.",
    "overview.groups_refused": "Os offsets de {count} grupos não podem ser lidos: {named}",
    "overview.groups_refused_todo": "O usuário do console precisa do direito de descrevê-los.",
}
