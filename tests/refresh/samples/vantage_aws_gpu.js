// Auto-generated from instances.vantage.sh data
// Last updated: 2026-01-21
// Total GPU instances: 92

const allGPUInstances = [
  {
    "name": "p5en.48xlarge",
    "apiName": "p5en.48xlarge",
    "gpu": "NVIDIA H200",
    "gpuCount": 8,
    "gpuMemory": "1128 GB HBM3e",
    "vcpu": 192,
    "memory": "2048 GiB",
    "network": "3200 Gbps EFAv3",
    "storage": "8 x 3.84 TB NVMe SSD",
    "pricing": {
      "ap-northeast-1": {
        "onDemand": 79.12
      },
      "ap-northeast-2": {
        "onDemand": 87.34848
      },
      "ap-south-1": {
        "onDemand": 75.9552
      },
      "ap-southeast-3": {
        "onDemand": 87.34848
      },
      "eu-north-1": {
        "onDemand": 67.72672
      },
      "eu-south-2": {
        "onDemand": 68.35968
      },
      "me-central-1": {
        "onDemand": 75.9552
      },
      "us-east-1": {
        "onDemand": 63.296
      },
      "us-east-1-atl-1": {
        "onDemand": 63.296
      },
      "us-east-2": {
        "onDemand": 63.296
      },
      "us-gov-west-1": {
        "onDemand": 75.9552
      },
      "us-west-1": {
        "onDemand": 79.12
      },
      "us-west-2": {
        "onDemand": 63.296
      }
    },
    "availability": [
      "ap-northeast-1",
      "ap-northeast-2",
      "ap-south-1",
      "ap-southeast-3",
      "eu-north-1",
      "eu-south-2",
      "me-central-1",
      "us-east-1",
      "us-east-1-atl-1",
      "us-east-2",
      "us-gov-west-1",
      "us-west-1",
      "us-west-2"
    ],
    "generation": "current",
    "family": "GPU instance",
    "ebsBandwidth": "100 Gbps",
    "gpuInterconnect": "900 GB/s NVSwitch",
    "gpuDirectRDMA": true,
    "source": "merged"
  },
  {
    "name": "trn1.32xlarge",
    "apiName": "trn1.32xlarge",
    "gpu": "AWS Trainium",
    "gpuCount": 16,
    "gpuMemory": "32 GB HBM",
    "vcpu": 128,
    "memory": "512 GB",
    "network": "8x 100 Gigabit",
    "storage": "1900 GB (4 × 475 GB SSD)",
    "pricing": {
      "us-east-1": {
        "onDemand": 21.5,
        "reserved": 13.22895
      },
      "us-east-2": {
        "onDemand": 21.5,
        "reserved": 13.22895
      },
      "us-west-2": {
        "onDemand": 21.5,
        "reserved": 13.22895
      }
    },
    "availability": [
      "us-east-1",
      "us-east-2",
      "us-west-2"
    ],
    "generation": "current",
    "family": "Machine Learning ASIC Instances"
  },
];
