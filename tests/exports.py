"""Small made-up exports of monitoring tools, as these tools write them."""

from __future__ import annotations

from pathlib import Path

INFLUX = """#group,false,false,true,true,false,false,true,true,true
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string
#default,_result,,,,,,,,edge
,result,table,_start,_stop,_time,_value,_field,_measurement,link
,,0,2026-03-01T00:00:00Z,2026-03-02T00:00:00Z,2026-03-01T00:00:00Z,41.5,rtt_ms,ping,fra-ams
,,0,2026-03-01T00:00:00Z,2026-03-02T00:00:00Z,2026-03-01T00:00:10Z,42.5,rtt_ms,ping,fra-ams
,,1,2026-03-01T00:00:00Z,2026-03-02T00:00:00Z,2026-03-01T00:00:00Z,12.5,rtt_ms,ping,
,,1,2026-03-01T00:00:00Z,2026-03-02T00:00:00Z,2026-03-01T00:00:10Z,13,rtt_ms,ping,

#group,false,false,true,true,false,false,true,true,true
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string
#default,_result,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,link
,,2,2026-03-01T00:00:00Z,2026-03-02T00:00:00Z,2026-03-01T00:00:10Z,0.5,loss_percent,ping,fra-ams
"""

IPERF3 = """{"start": {"timestamp": {"timesecs": 1772323200}, "connecting_to": {"host": "10.0.0.2", "port": 5201}},
 "intervals": [
  {"streams": [{"socket": 5, "rtt": 4100}, {"socket": 7, "rtt": 4300}],
   "sum": {"start": 0, "end": 1, "seconds": 1, "bits_per_second": 9e7, "retransmits": 4, "omitted": true}},
  {"streams": [{"socket": 5, "rtt": 4100}, {"socket": 7, "rtt": 4300}],
   "sum": {"start": 1, "end": 2, "seconds": 1, "bits_per_second": 9.1e8, "retransmits": 0, "omitted": false}},
  {"streams": [{"socket": 5, "rtt": 4200}, {"socket": 7, "rtt": 4500}],
   "sum": {"start": 2, "end": 3, "seconds": 1, "bits_per_second": 8.8e8, "retransmits": 3, "omitted": false}}],
 "end": {}}
"""

MTR = """Mtr_Version,Start_Time,Status,Host,Hop,Ip,Asn,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,
MTR.0.95,1772323200,OK,10.0.0.9,1,192.0.2.1,AS???,0.00,10,0,0.41,0.46,0.41,0.57,0.05
MTR.0.95,1772323200,OK,10.0.0.9,2,???,AS???,100.00,10,0,0.00,0.00,0.00,0.00,0.00
Mtr_Version,Start_Time,Status,Host,Hop,Ip,Asn,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,
MTR.0.95,1772323260,OK,10.0.0.9,1,192.0.2.1,AS???,10.00,10,0,0.51,0.56,0.51,0.77,0.15
MTR.0.95,1772323260,OK,10.0.0.9,2,192.0.2.9,AS???,0.00,10,0,9.10,9.30,8.90,12.00,0.40
"""

FPING = """[1772323200.00001] 10.0.0.1 : [0], 64 bytes, 12.3 ms (12.3 avg, 0% loss)
[1772323201.00001] 10.0.0.1 : [1], timed out (12.3 avg, 50% loss)
[1772323202.00001] 10.0.0.1 : [2], 64 bytes, 12.9 ms (12.6 avg, 33% loss)
"""

PING = """PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.
[1772323200.123456] 64 bytes from 10.0.0.1: icmp_seq=1 ttl=57 time=12.3 ms
[1772323201.123456] no answer yet for icmp_seq=2
[1772323202.123456] 64 bytes from 10.0.0.1: icmp_seq=3 ttl=57 time=14.3 ms
"""

PING_WITHOUT_TIMES = """PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.
64 bytes from 10.0.0.1: icmp_seq=1 ttl=57 time=12.3 ms
64 bytes from 10.0.0.1: icmp_seq=2 ttl=57 time=12.4 ms
"""

SMOKEPING = """                          uptime                loss              median               ping1

1772323200: -nan 0.0000000000e+00 1.2000000000e-02 1.1000000000e-02
1772323500: -nan 2.0000000000e+00 1.3000000000e-02 1.2000000000e-02
1772323800: -nan -nan -nan -nan
"""

GRAFANA_LABELS = """"Time","rtt{link=""fra-ams"",job=""p""}","rtt{link=""par-mad"",job=""p""}","loss{link=""fra-ams""}"
2026-03-01 00:00:00,41.5,12.5,0
2026-03-01 00:00:15,42.5,,0.1
"""

GRAFANA_EXCEL = """sep=;
"Time";"rtt_ms";"loss_percent"
2026-03-01 00:00:00;41.5;0
2026-03-01 00:00:15;42.5;13
"""

GRAFANA_PLAIN = """"Time","fra-ams","par-mad"
2026-03-01 00:00:00,41.5,12.5
2026-03-01 00:00:15,42.5,13
"""

GRAFANA_LONG = """"Series";"Time";"Value"
"fra-ams";"2026-03-01T00:00:00+00:00";41.5
"fra-ams";"2026-03-01T00:00:15+00:00";42.5
"par-mad";"2026-03-01T00:00:00+00:00";12.5
"par-mad";"2026-03-01T00:00:15+00:00";12.6
"""

PROMETHEUS = """{"status": "success", "data": {"resultType": "matrix", "result": [
 {"metric": {"__name__": "ifHCInOctets", "instance": "r1", "ifName": "eth0"},
  "values": [[1772323200, "100"], [1772323215, "250"]]},
 {"metric": {"__name__": "ifHCInOctets", "instance": "r1", "ifName": "eth1"},
  "values": [[1772323200, "7"], [1772323215, "NaN"]]}]}}
"""

LONG = """timestamp,link,metric,value
2026-03-01T00:00:00Z,fra-ams,rtt_ms,41.5
2026-03-01T00:00:00Z,fra-ams,loss_ratio,0
2026-03-01T00:00:10Z,fra-ams,rtt_ms,42
2026-03-01T00:00:00Z,par-mad,rtt_ms,12
2026-03-01T00:00:10Z,par-mad,rtt_ms,12.1
"""

TELEGRAF = """timestamp,measurement,host,url,average_response_ms,percent_packet_loss
1772323200,ping,probe1,10.0.0.1,12.5,0
1772323200,ping,probe1,10.0.0.2,42.5,0
1772323210,ping,probe1,10.0.0.1,12.7,0
1772323210,ping,probe1,10.0.0.2,42.7,50
"""

TELEGRAF_WITHOUT_HEADER = TELEGRAF.partition("\n")[2]


def written(directory: Path, text: str, name: str = "export.csv") -> Path:
    """The export as a file."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path
